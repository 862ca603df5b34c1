"""Tests of the method that ranks and predicts."""
