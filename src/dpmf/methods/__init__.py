"""The methods: a folder each, and a line each in the registry, which everything else reads.

>>> configure("sgd", {"n_factors": "8"})
SGD(n_factors=8, n_epochs=30, learning_rate=None, regularization=None, decay='linear', initial_sd=0.01, \
storage='float32', validation=0.0, patience=3, seed=0)
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping
from typing import Any

from dpmf.errors import InvalidArgument
from dpmf.methods.als import ALS
from dpmf.methods.base import Method
from dpmf.methods.gaussian import GaussianGD
from dpmf.methods.objective import ObjectivePerturbation
from dpmf.methods.sgd import SGD
from dpmf.methods.sgld import SGLD
from dpmf.methods.sketch import Sketch

METHODS: Mapping[str, type[Method]] = {
    method.name: method for method in (ALS, SGD, SGLD, GaussianGD, Sketch, ObjectivePerturbation)
}

__all__ = ["ALS", "METHODS", "SGD", "SGLD", "GaussianGD", "Method", "ObjectivePerturbation", "Sketch", "configure"]


def configure(name: str, settings: Mapping[str, Any]) -> Method:
    """Return a method with some of its fields set; texts are read as Python literals where they are any."""
    if name not in METHODS:
        raise InvalidArgument(f"method {name!r} is not known: choose from {', '.join(METHODS)}")
    fields = [field.name for field in dataclasses.fields(METHODS[name])]
    for field in settings:
        if field not in fields:
            raise InvalidArgument(f"{name} has no setting {field!r}: it has {', '.join(fields)}")
    values = {field: _literal(value) for field, value in settings.items()}
    try:
        return METHODS[name](**values)
    except TypeError as error:
        raise InvalidArgument(f"a setting of {name} has the wrong type: {error}") from None


def _literal(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return value
