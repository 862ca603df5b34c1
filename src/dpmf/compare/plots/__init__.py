"""Pictures. Each function draws on axes that it is given, or on new ones, and returns them.

Colours are told apart by colour-blind people; markers, fills and styles of lines tell the same apart in grey. A
published claim is always drawn hollow and dashed, what is certified filled and solid.

>>> sorted(__all__)
['catalogue_map', 'convergence', 'demo_picture', 'trace_picture', 'traces']
"""

from __future__ import annotations

from dpmf.compare.plots.catalogue import catalogue_map
from dpmf.compare.plots.convergence import convergence, trace_picture, traces
from dpmf.compare.plots.demonstration import demo_picture

__all__ = ["catalogue_map", "convergence", "demo_picture", "trace_picture", "traces"]
