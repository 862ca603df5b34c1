"""Tests of `dpmf.compare`; a package, so that they can share what makes rows."""
