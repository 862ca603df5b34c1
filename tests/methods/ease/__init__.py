"""Tests of the ranking method."""
