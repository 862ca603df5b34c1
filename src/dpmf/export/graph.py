"""A release as an ONNX graph: from one person's own ratings to scores of all items, wherever ONNX runs.

Inputs are `items`, their rows in items.csv, each once, and `ratings`, as many (counts, or ones, for implicit feedback).
Outputs are `order`, the rows of all items, best first, from which whoever makes a list leaves out the person's own;
`scores`, by which they are ordered; `expected`, ratings on the scale, if the release predicts any; and `query`, the
person as `dpmf.export.vectors.query_of` has it, if there is a rating model. A person's bias and factors solve linear
equations, which the graph does by elimination in double precision: see `dpmf.kernels.ridge` and `als_implicit` for the
equations, and `dpmf.model.ranking` for the ranking part. Items outside the head of a ranking have the same score, just
below it, and an order by popularity.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument, MissingExtra
from dpmf.model import Ranking, Release

_OPSET = 18
_MOST_BYTES = 2**31 - 2**20  # of a file in this format


class _Graph:
    """A graph that grows: each operation gives its output a name of its own."""

    def __init__(self, library: Any, prefix: str = "") -> None:
        self.library = library
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, kind: Any = np.float64) -> str:
        name = f"{self.prefix}constant_{len(self.constants)}"
        self.constants.append(self.library.numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def add(self, operation: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        name = name or f"{self.prefix}{operation}_{len(self.nodes)}"
        self.nodes.append(self.library.helper.make_node(operation, list(inputs), [name], **attributes))
        return name

    def cast(self, value: str, kind: str, name: str | None = None) -> str:
        return self.add("Cast", value, to=getattr(self.library.TensorProto, kind), name=name)

    def solve(self, matrix: str, right: str, n: int) -> str:
        """Return the solution of n linear equations, by elimination: M - (column k - e_k) ⊗ row k / M_kk for each k."""
        wide = self.add("Concat", matrix, right, axis=1)
        body, helper, types = _Graph(self.library, "loop_"), self.library.helper, self.library.TensorProto
        eye = body.constant(np.eye(n))
        zero_axis, one_axis = body.constant([0], np.int64), body.constant([1], np.int64)
        row = body.add("Gather", "M", "k", axis=0)  # (n + 1,)
        column = body.add("Gather", "M", "k", axis=1)  # (n,)
        scaled = body.add("Div", row, body.add("Gather", column, "k", axis=0))
        away = body.add("Sub", column, body.add("Gather", eye, "k", axis=0))
        outer = body.add("MatMul", body.add("Unsqueeze", away, one_axis), body.add("Unsqueeze", scaled, zero_axis))
        body.add("Sub", "M", outer, name="M_next")
        body.add("Identity", "go", name="go_on")
        loop = helper.make_graph(
            body.nodes,
            "eliminate",
            [
                helper.make_tensor_value_info("k", types.INT64, []),
                helper.make_tensor_value_info("go", types.BOOL, []),
                helper.make_tensor_value_info("M", types.DOUBLE, [n, n + 1]),
            ],
            [
                helper.make_tensor_value_info("go_on", types.BOOL, []),
                helper.make_tensor_value_info("M_next", types.DOUBLE, [n, n + 1]),
            ],
            body.constants,
        )
        trips, true = self.constant(n, np.int64), self.constant(True, np.bool_)
        solved = self.add("Loop", trips, true, wide, body=loop)
        return self.add("Gather", solved, self.constant(n, np.int64), axis=1)


def write_graph(release: Release, path: Path) -> dict[str, Any]:
    """Write the graph of a release, and return what is to be known of it."""
    try:
        import onnx
        import onnx.numpy_helper
    except ImportError:
        raise MissingExtra("onnx is not installed: pip install 'dpmf[export]', or onnx alone") from None
    graph, types, n = _Graph(onnx), onnx.TensorProto, len(release.items)
    shapes: dict[str, list[int]] = {}
    if release.predicts:
        expected = _predictions(graph, release)
        if release.ranking is None:
            graph.cast(expected, "FLOAT", name="scores")
        if not release.is_implicit:
            ends = graph.constant(release.scale.lo), graph.constant(release.scale.hi)
            graph.cast(graph.add("Clip", expected, *ends), "FLOAT", name="expected")
            shapes["expected"] = [n]
        shapes["query"] = [release.n_factors + 1]
    if release.ranking is not None:
        _ranking_scores(graph, release, release.ranking)
    listed = "scores"
    if release.behind is not None:
        listed = graph.add("Sub", "scores", graph.constant(release.behind, np.float32))
    _order(graph, n, listed, None if release.ranking is None else release.ranking.order)
    shapes = {"scores": [n], **shapes}
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes,
            "recommend",
            [
                onnx.helper.make_tensor_value_info("items", types.INT64, ["n_own"]),
                onnx.helper.make_tensor_value_info("ratings", types.FLOAT, ["n_own"]),
            ],
            [
                onnx.helper.make_tensor_value_info("order", types.INT64, [n]),
                *(onnx.helper.make_tensor_value_info(name, types.FLOAT, shape) for name, shape in shapes.items()),
            ],
            graph.constants,
        ),
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=9,
        producer_name="dpmf",
        doc_string=str(release.guarantee),
    )
    if model.ByteSize() > _MOST_BYTES:
        raise InvalidArgument("this release is too large for a file of ONNX, which ends at 2 GB: export numpy instead")
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
    return {"items": n, "inputs": ["items", "ratings"], "outputs": ["order", *shapes]}


def _predictions(graph: _Graph, release: Release) -> str:
    """Add the fold-in and the predictions of the rating model; `query` is an output."""
    V = release.item_factors
    factors, biases = graph.constant(V, np.float32), graph.constant(release.item_biases, np.float32)
    own = graph.cast(graph.add("Gather", factors, "items", axis=0), "DOUBLE")
    own_biases = graph.cast(graph.add("Gather", biases, "items", axis=0), "DOUBLE")
    fold_in = _fold_in_implicit if release.is_implicit else _fold_in_explicit
    solved = graph.cast(fold_in(graph, release, own, own_biases), "FLOAT")
    K = release.n_factors
    starts, ends, last = [graph.constant([one], np.int64) for one in (0, K, K + 1)]
    u, b = graph.add("Slice", solved, starts, ends), graph.add("Slice", solved, ends, last)
    graph.add("Concat", u, graph.constant([1.0], np.float32), axis=0, name="query")
    # A product over nothing is not 0 everywhere, but whatever is in memory.
    scores = graph.add("Add", graph.add("MatMul", factors, u), biases) if K else biases
    mean = graph.add("Add", graph.constant([release.mean]), graph.cast(b, "DOUBLE"))
    return graph.add("Add", graph.cast(scores, "DOUBLE"), mean)


def _fold_in_explicit(graph: _Graph, release: Release, own: str, own_biases: str) -> str:
    """Return (u, b), shape (K + 1,): ridge regression of the ratings; see `dpmf.kernels.ridge`."""
    penalties, K = release.penalties, release.n_factors
    rest = graph.add("Sub", graph.cast("ratings", "DOUBLE"), graph.constant(release.mean))
    rest = graph.add("Sub", rest, own_biases)
    ones = graph.add(
        "Unsqueeze",
        graph.add("Add", graph.add("Mul", rest, graph.constant(0.0)), graph.constant(1.0)),
        graph.constant([1], np.int64),
    )
    Z = graph.add("Concat", own, ones, axis=1)
    Zt = graph.add("Transpose", Z, perm=[1, 0])
    count = graph.add("Max", graph.cast(graph.add("Shape", "items"), "DOUBLE"), graph.constant([1.0]))
    scale = graph.add("Pow", count, graph.constant(penalties.exponent))
    ridge = graph.add("Mul", graph.constant(np.diag([penalties.factors] * K + [penalties.bias])), scale)
    A = graph.add("Add", graph.add("MatMul", Zt, Z), ridge)
    y = graph.add("MatMul", Zt, graph.add("Unsqueeze", rest, graph.constant([1], np.int64)))
    return graph.solve(A, y, K + 1)


def _fold_in_implicit(graph: _Graph, release: Release, own: str, own_biases: str) -> str:
    """Return (u, 0), shape (K + 1,): see `dpmf.kernels.als_implicit`. Who has nothing has factors of 0."""
    common, alpha, K = release.implicit_items, release.alpha, release.n_factors
    own_t = graph.add("Transpose", own, perm=[1, 0])
    A = graph.add(
        "Add", graph.constant(common.gramian), graph.add("Mul", graph.add("MatMul", own_t, own), graph.constant(alpha))
    )
    pulls = graph.add("Sub", graph.constant(1.0 + alpha), graph.add("Mul", own_biases, graph.constant(alpha)))
    column = graph.constant([1], np.int64)
    pulled = graph.add("MatMul", own_t, graph.add("Unsqueeze", pulls, column))
    y = graph.add("Sub", pulled, graph.constant(common.bias_sum[:, None]))
    has_any = graph.add("Min", graph.cast(graph.add("Shape", "items"), "DOUBLE"), graph.constant([1.0]))
    u = graph.add("Mul", graph.solve(A, y, K), has_any)
    return graph.add("Concat", u, graph.constant([0.0]), axis=0)


def _ranking_scores(graph: _Graph, release: Release, ranking: Ranking) -> None:
    """Add the scores of the ranking part, as the output `scores`."""
    head, n = len(ranking.items), len(release.items)
    popularity = graph.constant(ranking.popularity, np.float32)
    if not head:
        graph.add("Identity", popularity, name="scores")
        return
    weights = _weights(graph, release, ranking)
    places = graph.add("Gather", graph.constant(ranking.places, np.int64), "items", axis=0)
    zero = graph.constant(0, np.int64)
    in_head = graph.cast(graph.add("GreaterOrEqual", places, zero), "FLOAT")
    counted = graph.add("Mul", weights, in_head)
    nothing = graph.constant(np.zeros(head), np.float32)
    owned = graph.add("ScatterElements", nothing, graph.add("Max", places, zero), counted, axis=0, reduction="add")
    of_head = nothing
    if ranking.left.shape[1]:
        taste = graph.add("MatMul", owned, graph.constant(ranking.left, np.float32))
        of_head = graph.add("MatMul", taste, graph.constant(ranking.right.T, np.float32))
    if len(ranking.pairs):
        rows = np.repeat(np.arange(head), np.diff(ranking.indptr))
        of_pairs = graph.add("Gather", owned, graph.constant(rows, np.int64), axis=0)
        of_pairs = graph.add("Mul", of_pairs, graph.constant(ranking.values, np.float32))
        columns = graph.constant(ranking.pairs, np.int64)
        of_head = graph.add("ScatterElements", of_head, columns, of_pairs, axis=0, reduction="add")
    lowest = graph.add("ReduceMin", of_head, keepdims=1)
    below = graph.add(
        "Sub", graph.add("Expand", lowest, graph.constant([n], np.int64)), graph.constant(1.0, np.float32)
    )
    places_of_head = graph.constant(ranking.items, np.int64)
    known = graph.add("ScatterElements", below, places_of_head, of_head, axis=0)
    total = graph.add("ReduceSum", counted, keepdims=1)
    graph.add("Where", graph.add("Greater", total, graph.constant(0.0, np.float32)), known, popularity, name="scores")


def _order(graph: _Graph, n: int, scores: str, order: NDArray[np.int32] | None) -> None:
    """Add the output `order`: by score, and among equals by the order given, or by that of the catalogue."""
    order = np.arange(n, dtype=np.int32) if order is None else order
    turns = graph.constant(order, np.int64)
    sizes = graph.constant([n], np.int64)
    scores = graph.add("Gather", scores, turns, axis=0)
    graph.nodes.append(graph.library.helper.make_node("TopK", [scores, sizes], ["sorted", "ranks"], axis=0))
    graph.add("Gather", turns, "ranks", axis=0, name="order")


def _weights(graph: _Graph, release: Release, ranking: Ranking) -> str:
    """Return how much each own item counts, as `Release.weigh` has it."""

    def number(value: float) -> str:
        return graph.constant(value, np.float32)

    given = "ratings"
    if release.is_implicit:
        if not ranking.weighs_counts:
            return graph.add("Add", graph.add("Mul", given, number(0.0)), number(1.0))
        cut = graph.add("Clip", given, number(1.0), number(ranking.threshold))
        share = graph.add("Div", graph.add("Log", cut), number(float(np.log(ranking.threshold))))
        return graph.add("Add", number(1.0), graph.add("Mul", share, number(1 / ranking.lowest_weight - 1)))
    span = release.scale.hi - ranking.threshold
    lowest = ranking.lowest_weight
    if span > 0:
        share = graph.add("Div", graph.add("Sub", given, number(ranking.threshold)), number(span))
        share = graph.add("Clip", share, number(0.0), number(1.0))
    else:
        share = graph.add("Add", graph.add("Mul", given, number(0.0)), number(1.0))
    weight = graph.add("Add", number(lowest), graph.add("Mul", share, number(1 - lowest)))
    counts = graph.cast(graph.add("GreaterOrEqual", given, number(ranking.threshold)), "FLOAT")
    return graph.add("Mul", weight, counts)
