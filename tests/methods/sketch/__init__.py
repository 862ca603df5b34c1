"""Tests of dpmf.methods.sketch."""
