"""Tests of dpmf.methods.gaussian."""
