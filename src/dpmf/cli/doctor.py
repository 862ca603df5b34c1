"""`dpmf doctor`."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmf import __version__
from dpmf.cli.groups import grouped
from dpmf.cli.output import json_option, print_json, print_table
from dpmf.cli.train_options import ClusterOptions, cluster_options

if TYPE_CHECKING:
    from dpmf.engine.cluster import Ray

_PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "llvmlite",
    "duckdb",
    "safetensors",
    "dp-accounting",
    "cryptography",
    "click",
    "rich",
    "matplotlib",
    "ray",
)
_THREAD_LIMITS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@click.command()
@cluster_options
@json_option
@grouped(spread=ClusterOptions)
def doctor(spread: ClusterOptions, as_json: bool) -> None:
    """Show what this machine offers.

    Versions, CPU features, threads, and the cache of compiled code.

    With --cluster, show what that offers: workers are started as for training, and refused where results would differ.
    """
    executor = spread.executor()
    facts = _facts() if executor is None else _offers(executor)
    if as_json:
        print_json(facts)
    else:
        print_table("", ("", ""), [(name, _text(value)) for name, value in facts.items()])


def _facts() -> dict[str, Any]:
    from llvmlite import binding

    from dpmf.engine.threads import available_cpus

    features = binding.get_host_cpu_features()
    cache = _cache()
    return {
        "dpmf": __version__,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        **{name: _version(name) for name in _PACKAGES},
        "cpu": binding.get_host_cpu_name(),
        "cpu_features": sorted(
            name for name, there in features.items() if there and name.startswith(("avx", "sse4", "fma", "neon"))
        ),
        "cpus": os.cpu_count(),
        "threads": available_cpus(),
        "thread_limits": {name: os.environ[name] for name in _THREAD_LIMITS if name in os.environ},
        **cache,
    }


def _offers(executor: Ray) -> dict[str, Any]:
    with executor.start() as cluster:
        return {"cluster": executor.address, **cluster.offers()}


def _cache() -> dict[str, Any]:
    """Return where compiled kernels are cached, and how many files there are."""
    from dpmf.kernels import sgd

    place = getattr(sgd.sgd_block.compiled._cache, "cache_path", None)  # type: ignore[attr-defined]  # Numba has no public way
    if place is None:
        return {"numba_cache": "none: no folder is writable, so every process compiles its kernels"}
    folder = Path(place)
    there = folder.is_dir()
    return {
        "numba_cache": str(folder),
        "numba_cache_files": len(list(folder.glob("*.nbc"))) if there else 0,
        "numba_cache_writable": os.access(folder if there else folder.parent, os.W_OK),
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(value)
    if isinstance(value, dict):
        return " ".join(f"{name}={one}" for name, one in value.items()) or "none set"
    return str(value)
