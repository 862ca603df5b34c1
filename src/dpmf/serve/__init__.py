"""Recommendations where the ratings are: a page that runs in the browser, and a small service that serves it."""
