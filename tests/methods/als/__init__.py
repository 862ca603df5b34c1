"""Tests of dpmf.methods.als."""
