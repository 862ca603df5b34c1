"""Figures of Balu and Furon (2016)."""

from __future__ import annotations

from experiments.figure import Figure

FIGURES: dict[str, Figure] = {}
