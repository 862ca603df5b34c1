"""The figures of the papers that dpmf unites, reproduced: `python -m experiments` lists them.

One package per paper, one module per kind of figure. A module measures the points of its figure, one row each, plots
them, and judges from the rows whether the published finding holds. `dpmf` itself never imports this package.
"""
