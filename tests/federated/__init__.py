"""Tests of the untrusted-recommender protocol; a package, so that its `conftest` has a name of its own."""
