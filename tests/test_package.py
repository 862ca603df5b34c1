"""The package as a whole: quick and quiet to import, and complete."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dpmf

HEAVY = (
    "numba",
    "llvmlite",
    "scipy",
    "duckdb",
    "matplotlib",
    "numpy",
    "rich",
    "click",
    "cryptography",
    "dp_accounting",
)


def test_importing_prints_nothing_and_loads_nothing_heavy() -> None:
    code = f"import sys, dpmf; print(sorted(set({HEAVY}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("name", [name for name in dpmf.__all__ if name != "__version__"])
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(dpmf, name).__name__ == name
    assert name in dir(dpmf)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'dpmf' has no attribute 'nonsense'"):
        dpmf.nonsense  # noqa: B018


def test_every_error_of_ours_is_a_dpmf_error() -> None:
    from dpmf import errors

    ours = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, Exception)]
    assert len(ours) > 5
    assert all(issubclass(one, dpmf.DpmfError) for one in ours)
    assert str(errors.UnknownId("item 7")) == "item 7"
