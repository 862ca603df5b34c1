"""Tests of compiled loops; a package, so that they can share `crowds`."""
