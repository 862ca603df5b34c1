"""`python -m dpmf` is the command `dpmf`."""

from dpmf.cli import main

if __name__ == "__main__":
    main()
