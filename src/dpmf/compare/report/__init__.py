"""One page that says everything about a comparison, and needs nothing but a browser."""

from dpmf.compare.report.page import write_report

__all__ = ["write_report"]
