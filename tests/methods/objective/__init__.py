"""Tests of dpmf.methods.objective."""
