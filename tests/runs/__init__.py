"""Tests of runs: reading, training, evaluating and what is written."""
