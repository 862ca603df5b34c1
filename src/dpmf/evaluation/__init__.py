"""Metrics, and what to make of them."""

from dpmf.evaluation.accuracy import baseline_errors, evaluate, prediction_errors

__all__ = ["baseline_errors", "evaluate", "prediction_errors"]
