"""The browser page, and what serves it: recommendations where the ratings are."""
