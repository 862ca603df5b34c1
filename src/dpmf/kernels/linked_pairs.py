"""Sums over people of how much they like items of linked pairs together, formed in integers.

A person likes items by weights from 0 to 1, as in `dpmf.kernels.item_pairs`, and a linked pair by the product of both
weights and of the link's own. These products are scaled to a fixed length, over linked pairs alone. One more number
says how much all of them weigh beside everything that the person likes. Whatever the ratings are, the Euclidean length
of what one person adds is at most their share times `steps`: see docs/proofs/ease.md.

>>> own = Csr(np.array([0, 3]), np.array([0, 1, 2], np.int32), np.float32([5, 5, 5]))
>>> linked = Csr(np.array([0, 1, 2, 2]), np.array([1, 2], np.int32), np.float32([1, 1]))  # items 0 and 1, 1 and 2
>>> sums = np.zeros(3, np.int64)
>>> add_linked_pairs(own, 0, 1, Ramp(2.0, 4.0), linked, np.ones(1), 1000.0, sums)
>>> sums.tolist()
[692, 692, 66]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.bounded_sums import SAFETY, valid_share
from dpmf.kernels.csr import Csr
from dpmf.kernels.item_pairs import Ramp, preference
from dpmf.kernels.jit import kernel

MASS = 0.2  # of a person's length goes into the last number, and the rest into pairs
MOST_MASS = 2.0  # a person's linked pairs weigh this much at the most, beside all that they like
_LEAST_TOTAL = 1e-250  # squares that make up a smaller sum may have lost digits
_PAIRS = (1.0 - MASS * MASS) ** 0.5


@kernel
def add_linked_pairs(
    rated: Csr,
    start: int,
    stop: int,
    ramp: Ramp,
    linked: Csr,
    shares: NDArray[np.float64],
    steps: float,
    sums: NDArray[np.int64],  # out
) -> None:
    """Add everybody's linked pairs to sums, shape (P + 1,): P pairs, and their mass. Bound: the person's share.

    linked has a row for every item, of the items that it is linked to and that come after it in the catalogue, and the
    weights of these links, from 0 to 1; a pair's place in the sums is its place there.
    """
    indptr, items, values = rated
    n_items = len(linked.indptr) - 1
    weights = np.zeros(n_items)
    for i in range(start, stop):
        scale = SAFETY * valid_share(shares, i) * steps
        if not scale > 0.0:
            continue
        last, all_squares = -1, 0.0
        for p in range(indptr[i], indptr[i + 1]):
            item = items[p]
            if last < item < n_items:
                last = item
                weights[item] = preference(values[p], ramp)
                all_squares += weights[item] * weights[item]
        last, squares, mass = -1, 0.0, 0.0
        for p in range(indptr[i], indptr[i + 1]):
            item = items[p]
            if last < item < n_items:
                last = item
                for q in range(linked.indptr[item], linked.indptr[item + 1]):
                    product = weights[item] * weights[linked.items[q]]
                    squares += (product * linked.values[q]) ** 2
                    mass += product
        normalizer = scale * _PAIRS / np.sqrt(squares) if _LEAST_TOTAL < squares < np.inf else 0.0
        last = -1
        for p in range(indptr[i], indptr[i + 1]):
            item = items[p]
            if last < item < n_items:
                last = item
                for q in range(linked.indptr[item], linked.indptr[item + 1]):
                    product = weights[item] * weights[linked.items[q]]
                    sums[q] += np.int64(normalizer * (product * linked.values[q]))
                weights[item] = 0.0  # links are to later items: it is not needed any more, and the next person's is 0
        if normalizer > 0.0:
            sums[len(linked.items)] += np.int64(scale * MASS * min(mass / all_squares / MOST_MASS, 1.0))


def linked_pairs_reference(
    weights: NDArray[Any], first: NDArray[Any], second: NDArray[Any], links: NDArray[Any]
) -> NDArray[np.float64]:
    """Return what one person adds who likes a linked pair, before truncation and for steps = 1.

    Args:
        weights: of all items, 0 for those that the person does not like.
        first, second: the items of each pair.
        links: the weight of each pair.
    """
    products = weights[first] * weights[second]
    pairs = products * links
    mass = products.sum() / (weights @ weights)
    return np.concatenate([_PAIRS * pairs / np.linalg.norm(pairs), [MASS * min(mass / MOST_MASS, 1.0)]])
