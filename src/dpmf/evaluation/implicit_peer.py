"""The package `implicit` as a peer, where it is installed: alternating least squares on what people like.

>>> is_installed() in (True, False)
True
"""

from __future__ import annotations

import json
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.threads import thread_count
from dpmf.errors import InvalidArgument
from dpmf.evaluation.new_users import Ranker
from dpmf.evaluation.peer_process import ask
from dpmf.files import scratch_folder
from dpmf.kernels.csr import CsrPattern

_N_FACTORS = 64  # the other settings are its defaults
_PROGRAM = """
import json, sys
from implicit.cpu.als import AlternatingLeastSquares
import numpy as np
from scipy.sparse import csr_matrix
folder, settings = sys.argv[1], json.loads(sys.argv[2])
arrays = np.load(folder + "/liked.npz")
def matrix(name):
    items, indptr = arrays[name + "_items"], arrays[name + "_indptr"]
    return csr_matrix((np.ones(len(items), np.float32), items, indptr), shape=(len(indptr) - 1, settings["n_items"]))
known = matrix("known")
model = AlternatingLeastSquares(factors=settings["n_factors"], num_threads=settings["n_threads"], random_state=0)
model.fit(matrix("train"), show_progress=False)
people = np.arange(known.shape[0])
found, _ = model.recommend(people, known, N=settings["k"], filter_already_liked_items=True, recalculate_user=True)
np.save(folder + "/found.npy", found.astype(np.int32))
print("RESULT", json.dumps(len(found)))
"""


def is_installed() -> bool:
    """Tell whether there is a package `implicit`."""
    return find_spec("implicit") is not None


def implicit_ranker(liked: CsrPattern, n_items: int, n_threads: int | None = None) -> Ranker:
    """Return how `implicit` ranks, without privacy; it is trained, in a process of its own, when it is called.

    Args:
        liked: what those who are learnt from like.
        n_items: the size of the catalogue.
        n_threads: all CPUs by default.
    """
    settings = {"n_items": n_items, "n_factors": _N_FACTORS, "n_threads": thread_count(n_threads)}

    def rank(indptr: NDArray[np.int64], items: NDArray[np.int32], _: object, k: int) -> NDArray[np.int32]:
        with scratch_folder("peer") as folder:
            np.savez(
                folder / "liked.npz",
                train_indptr=liked.indptr,
                train_items=liked.items,
                known_indptr=indptr,
                known_items=items,
            )
            asked = ["-c", _PROGRAM, str(folder), json.dumps({**settings, "k": k})]
            # implicit asks for one thread of BLAS, since it has threads of its own.
            if ask("implicit", asked, {"OPENBLAS_NUM_THREADS": "1"}) is None:
                raise InvalidArgument("implicit is installed, and failed: update it, or uninstall it to go without")
            found: NDArray[np.int32] = np.load(folder / "found.npy")
        return found

    return rank
