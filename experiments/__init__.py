"""The figures of the papers that dpmf unites, made anew: `python -m experiments` lists them.

One module per paper, one function per figure. A function measures the points of its figure, one row each, draws them,
and says from the rows whether what was published held. `dpmf` itself never imports this package.
"""
