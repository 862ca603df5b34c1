"""Tests of dpmf.methods.certified."""
