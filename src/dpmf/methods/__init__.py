"""The methods: a folder each, and a line each in the registry, which everything else reads.

>>> configure("sgd", {"n_factors": "8"})
SGD(n_factors=8, n_epochs=30, learning_rate=None, regularization=None, decay='linear', initial_sd=0.01, \
storage='float32', validation=0.0, patience=3, seed=0)
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.methods.als import ALS
    from dpmf.methods.base import Method
    from dpmf.methods.ease import EASE
    from dpmf.methods.gaussian import GaussianGD
    from dpmf.methods.joint import Joint
    from dpmf.methods.objective import ObjectivePerturbation
    from dpmf.methods.sgd import SGD
    from dpmf.methods.sgld import SGLD
    from dpmf.methods.sketch import Sketch

_CLASSES = {  # by name, which is that of the folder, too
    "als": "ALS",
    "ease": "EASE",
    "joint": "Joint",
    "sgd": "SGD",
    "sgld": "SGLD",
    "gaussian": "GaussianGD",
    "sketch": "Sketch",
    "objective": "ObjectivePerturbation",
}

__all__ = [
    "ALS",
    "EASE",
    "METHODS",
    "SGD",
    "SGLD",
    "GaussianGD",
    "Joint",
    "Method",
    "ObjectivePerturbation",
    "Sketch",
    "configure",
]


class _Registry(Mapping[str, "type[Method]"]):
    """All methods by name. Names are known at once; a class is imported when it is looked up."""

    def __getitem__(self, name: str) -> type[Method]:
        class_name = _CLASSES[name]  # first: a name that is not known is a KeyError
        found: type[Method] = getattr(importlib.import_module(f"{__name__}.{name}"), class_name)
        return found

    def __contains__(self, name: object) -> bool:
        return name in _CLASSES

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


METHODS: Mapping[str, type[Method]] = _Registry()


def __getattr__(class_name: str) -> Any:
    """Import a class on first use."""
    if class_name == "Method":
        return importlib.import_module(f"{__name__}.base").Method
    for name, known in _CLASSES.items():
        if class_name == known:
            return METHODS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {class_name!r}")


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
        raise InvalidArgument(f"a setting of {name} is missing or has the wrong type: {error}") from None


def _literal(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return value
