"""Figures of Mugdho and Imtiaz (2023)."""

from __future__ import annotations

from experiments.figure import Figure

FIGURES: dict[str, Figure] = {}
