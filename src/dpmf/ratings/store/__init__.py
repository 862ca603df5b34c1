"""Ratings on disk: columns, pieces, external sorting, and synthetic sets of any size."""
