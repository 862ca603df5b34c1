"""Tests of `dpmf.ratings`; a package, so that type checkers tell its conftest from the one above."""
