"""Tests of dpmf.methods.sgld."""
