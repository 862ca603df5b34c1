"""Ratings on disk: columns, pieces, and sorting what does not fit in memory."""
