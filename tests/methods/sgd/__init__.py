"""Tests of dpmf.methods.sgd."""
