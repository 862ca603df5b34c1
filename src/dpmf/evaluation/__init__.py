"""Evaluation: accuracy, ranking and leak figures on held-out ratings."""

from dpmf.evaluation.accuracy import baseline_errors, evaluate, prediction_errors

__all__ = ["baseline_errors", "evaluate", "prediction_errors"]
