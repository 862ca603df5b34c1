"""The report of an audit: one page, with two pictures."""
