"""The figures of the papers that dpmf unites, made anew: `python -m experiments` lists them.

One package per paper, one module per kind of figure. A module measures the points of its figure, one row each, draws
them, and says from the rows whether what was published held. `dpmf` itself never imports this package.
"""
