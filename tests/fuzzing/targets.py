"""The parsers to be fuzzed: valid input of each, how to read it, and how to repair checksums that somebody would forge.

Reading means using, too: what was read from a damaged file and accepted goes through the loops that rely on it.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import subprocess
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpmf.cli.train_options import read_user_budgets
from dpmf.disclosure.explain import explain_release
from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.store import StoredRatings
from dpmf.errors import DpmfError
from dpmf.federated.certified import messages as certified
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.published import messages as published
from dpmf.federated.wire.ring import Ring
from dpmf.files import digest_of, sha256_of
from dpmf.methods import ALS, EASE, SGD, GaussianGD
from dpmf.model import Model, Ranking, Release, Ridge
from dpmf.model.signing import check_signature, read_private_key, read_public_key, sign
from dpmf.privacy import Budget, GaussianEvent, Guarantee
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.verify import verify
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.location import locate
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make
from dpmf.serve import site

from .mutations import mutate_bytes, mutate_json, mutate_tensors

Forge = Callable[[Path], None]


@dataclass(frozen=True)
class Target:
    """A parser of files.

    Attributes:
        name: what it reads.
        write: writes valid files to a folder.
        read: reads them, and uses what it found.
        files: the names of those to mutate, all by default.
        forge: repairs checksums after a mutation, as somebody malicious would.
    """

    name: str
    write: Callable[[Path], None]
    read: Callable[[Path], Any]
    files: tuple[str, ...] = ()
    forge: Forge = field(default=lambda folder: None)


def mutate(target: Target, valid: dict[str, bytes], folder: Path, rng: random.Random) -> str:
    """Write a mutation of valid files to a folder; return the name of the one that is changed."""
    for name, content in valid.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    name = rng.choice([one for one in sorted(valid) if not target.files or one in target.files])
    content, forged = valid[name], rng.random() < 0.7
    if name.endswith(".json") and rng.random() < 0.8:
        text = json.dumps(mutate_json(json.loads(content), rng))
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
    elif name.endswith(".safetensors") and rng.random() < 0.8:
        (folder / name).write_bytes(mutate_tensors(content, rng))
    else:
        (folder / name).write_bytes(mutate_bytes(content, rng))
    if forged:
        with contextlib.suppress(Exception):  # nothing can be repaired in what is no longer JSON
            target.forge(folder)
    return name


def _seal(path: Path, tensors: Path | None, without: tuple[str, ...] = ("digest",)) -> None:
    facts = json.loads(path.read_text())
    if tensors is not None:
        facts["sha256"] = sha256_of(tensors)
    if "digest" in facts:
        facts["digest"] = digest_of({name: value for name, value in facts.items() if name not in without})
    path.write_text(json.dumps(facts))


def _release(folder: Path) -> None:
    rng = np.random.default_rng(1)
    n_items, n_head = 9, 6
    ranking = Ranking(
        items=np.sort(rng.choice(n_items, n_head, replace=False)).astype(np.int32),
        left=rng.normal(size=(n_head, 3)).astype(np.float32),
        right=rng.normal(size=(n_head, 3)).astype(np.float32),
        indptr=np.arange(0, 2 * n_head + 1, 2),
        pairs=np.tile(np.array([1, 4], np.int32), n_head),
        values=rng.normal(size=2 * n_head).astype(np.float32),
        popularity=rng.permutation(n_items).astype(np.float32),
        threshold=3.0,
        lowest_weight=0.25,
    )
    events = [GaussianEvent("item sums", noise_multiplier=5.0, coordinates=40)]
    Release(
        items=Items.of([*map(str, range(1, n_items)), "x"], ["Heat", "Up", *"abcdefg"], ["Crime|Drama", *[""] * 8]),
        scale=Scale(1, 5),
        mean=3.0,
        item_factors=rng.normal(size=(n_items, 3)).astype(np.float32),
        item_biases=rng.normal(size=n_items).astype(np.float32),
        ridge=Ridge(1.0, 2.0, 0.5),
        configuration={"method": "als"},
        guarantee=Guarantee.certified_by(Budget(1.0), events, releases=["item factors"]),
        ranking=ranking,
    ).save(folder / "release")


def _use_release(folder: Path) -> None:
    release = Release.load(folder / "release")
    ids = list(release.items.ids)[:3]
    scores = [one.score for one in release.fold_in(dict.fromkeys(ids, release.scale.hi)).recommend(k=3)] if ids else []
    assert np.isfinite(scores).all()
    explain_release(release)
    verify(release.guarantee)


def _forge_release(folder: Path) -> None:
    inside = folder / "release"
    _seal(inside / "release.json", inside / "release.safetensors", ("digest", "signature"))


def _model(folder: Path) -> None:
    SGD(n_factors=2, n_epochs=2).fit(make(12, 10), n_threads=1).save(folder / "model")


def _use_model(folder: Path) -> None:
    Model.load(folder / "model").recommend_batch(k=2, n_threads=1)


def _forge_model(folder: Path) -> None:
    inside = folder / "model"
    _seal(inside / "release" / "release.json", inside / "release" / "release.safetensors", ("digest", "signature"))
    _seal(inside / "model.json", inside / "model.safetensors")


def _keys(folder: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    (folder / "private.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / "public.pem").write_bytes(public)
    (folder / "signature.json").write_text(json.dumps(["5feceb66", sign("5feceb66", key)]))


def _use_keys(folder: Path) -> None:
    read_private_key(folder / "private.pem")
    public = read_public_key(folder / "public.pem")
    with contextlib.suppress(json.JSONDecodeError, UnicodeDecodeError):  # the release's own reader, fuzzed above
        pair = json.loads((folder / "signature.json").read_text())
        if isinstance(pair, list) and len(pair) == 2:
            check_signature(pair[0], pair[1], public)


_RATINGS = make(30, 20)
_METHOD = SGD(n_factors=2, n_epochs=2)


def _store(folder: Path) -> None:
    StoredRatings.build(MemorySource(_RATINGS), folder / "store")


def _use_store(folder: Path) -> None:
    stored = StoredRatings.open(folder / "store", memory=1 << 16)
    stored.columns.load()
    SGD(n_factors=2, n_epochs=1).fit(stored, n_threads=1)


def _forge_store(folder: Path) -> None:
    inside = folder / "store"
    facts = next(path for path in inside.glob("*.json"))
    _seal(facts, next(inside.glob("*.safetensors")))
    _seal(inside / "blocks" / "layout.json", inside / "blocks" / "layout.safetensors")


def _checkpoint(folder: Path) -> None:
    _METHOD.fit(_RATINGS, n_threads=1, checkpoint=Checkpoint(folder / "run"))


def _use_checkpoint(folder: Path) -> None:
    warnings.simplefilter("ignore", RuntimeWarning)  # forged numbers may overflow: whoever forges them gets as much
    _METHOD.fit(_RATINGS, n_threads=1, checkpoint=Checkpoint(folder / "run", resume=True))


def _forge_checkpoint(folder: Path) -> None:
    inside = next((folder / "run").glob("epoch-*"))
    _seal(inside / "state.json", inside / "state.safetensors")


_CERTIFIED = (
    ALS(n_factors=2, n_epochs=2, budget=Budget(20.0), noise_seed=1),
    EASE(head=8, budget=Budget(30.0), noise_seed=1),
    GaussianGD(n_factors=2, n_epochs=3, budget=Budget(20.0), noise_seed=1),
)


def _certified_checkpoint(folder: Path) -> None:
    for number, method in enumerate(_CERTIFIED):
        method.fit(_RATINGS, n_threads=1, checkpoint=Checkpoint(folder / f"run-{number}"))


def _use_certified_checkpoint(folder: Path) -> None:
    warnings.simplefilter("ignore", RuntimeWarning)
    for number, method in enumerate(_CERTIFIED):
        method.fit(_RATINGS, n_threads=1, checkpoint=Checkpoint(folder / f"run-{number}", resume=True))


def _forge_certified(folder: Path) -> None:
    for inside in folder.glob("run-*"):
        for snapshot in inside.glob("epoch-*"):
            _seal(snapshot / "state.json", snapshot / "state.safetensors")
        _seal(inside / "started.json", None)


def _ledger(folder: Path) -> None:
    events = [GaussianEvent("item sums", noise_multiplier=5.0, coordinates=40)]
    granted = Guarantee.certified_by(Budget(1.0), events, releases=["item factors"])
    ledger = Ledger(folder / "ledger.json", Budget(9.0))
    for run in (None, "abc"):
        ledger.spend("release", granted, run=run)
    ledger.start("abc", 0)
    (folder / "ledger.json.lock").unlink(missing_ok=True)


def _use_ledger(folder: Path) -> None:
    Ledger(folder / "ledger.json").spent()


def _data(folder: Path) -> None:
    (folder / "dataset.json").write_text(json.dumps({"name": "small", "scale": [1, 5], "users_about": 100}))
    (folder / "items.csv").write_text('item,title,genres\n1,"Heat, again",Crime|Drama\n2,Up,\n3,七人の侍,History\n')
    (folder / "ratings.csv").write_text("user,item,rating,timestamp\nann,1,5,7\nann,2,4,8\nbob,3,1.5,9\n")


def _use_facts(folder: Path) -> None:
    locate(folder)


def _use_data(folder: Path) -> None:
    Ratings.read(folder)


def _use_items(folder: Path) -> None:
    Items.read(folder / "items.csv")


def _budgets(folder: Path) -> None:
    (folder / "budgets.csv").write_text('user,epsilon\nann,0.5\n"bob, jr",2\ncarl,inf\n')


def _use_budgets(folder: Path) -> None:
    read_user_budgets(folder / "budgets.csv")


FILES = (
    Target("release", _release, _use_release, forge=_forge_release),
    Target("model", _model, _use_model, forge=_forge_model),
    Target("keys and signatures", _keys, _use_keys),
    Target("store", _store, _use_store, forge=_forge_store),
    Target("checkpoint", _checkpoint, _use_checkpoint, forge=_forge_checkpoint),
    Target("certified checkpoint", _certified_checkpoint, _use_certified_checkpoint, forge=_forge_certified),
    Target("ledger", _ledger, _use_ledger, forge=lambda folder: _seal(folder / "ledger.json", None)),
    Target("dataset.json", _data, _use_facts, ("dataset.json",)),
    Target("items.csv", _data, _use_items, ("items.csv",)),
    Target("ratings.csv", _data, _use_data, ("ratings.csv", "items.csv", "dataset.json")),
    Target("budgets of users", _budgets, _use_budgets),
)


def messages() -> dict[str, list[tuple[bytes, Callable[[bytes], Any]]]]:
    """Return valid messages of the protocols, each with its reader."""
    sizes, ring, seed = published.Sizes(n_items=9, n_factors=4), Ring(3), bytes(range(32))
    items, codes = np.array([1, 4, 8], np.uint32), np.arange(12, dtype=np.uint16).reshape(3, 4)
    elements = np.arange(12, dtype=np.uint32).reshape(3, 4)
    task = published.Task(
        7, np.array([1, 2, 3], np.uint32), np.full((3, 4), 0.5, np.float32), codes, seed, True,
        np.array([0, 2], np.uint32), elements[:2], codes,
    )  # fmt: skip
    agreement = Agreement(ALS(n_factors=0, budget=Budget(5.0)), Items.of([1, 2, 3]), Scale(1, 5), n_users=4)
    told = {one.name: np.zeros(one.shape, one.dtype) for one in agreement.told(0)}
    everybody = np.arange(4, dtype=np.uint32)
    sums = np.zeros(agreement.n_elements(0), agreement.ring(0).dtype)
    return {
        "published protocol": [
            (published.Wanted(items).encoded(), lambda content: published.Wanted.decoded(content, sizes)),
            (task.encoded(ring), lambda content: published.Task.decoded(content, 3, 4, ring)),
            (published.SetUp(0, 5, np.zeros(sizes, np.uint16), seed).encoded(),
             lambda content: published.SetUp.decoded(content, sizes)),
            (published.Answer(7, items, elements).encoded(ring),
             lambda content: published.Answer.decoded(content, sizes, ring)),
            (published.Roster(7, items, np.array([1, 2, 1 << 63], np.uint64), 2).encoded(), published.Roster.decoded),
            (published.Total(7, items, items, elements).encoded(ring),
             lambda content: published.Total.decoded(content, sizes, ring)),
        ],
        "certified protocol": [
            (certified.Inquiry(0, agreement.digest, seed, told).encoded(agreement),
             lambda content: certified.Inquiry.decoded(content, agreement)),
            (certified.Answer(0, sums).encoded(agreement),
             lambda content: certified.Answer.decoded(content, agreement)),
            (certified.Expected(0, agreement.digest, everybody).encoded(agreement),
             lambda content: certified.Expected.decoded(content, agreement)),
            (certified.Total(0, everybody, sums).encoded(agreement),
             lambda content: certified.Total.decoded(content, agreement)),
        ],
    }  # fmt: skip


def read_or_refuse(read: Callable[[], Any]) -> bool:
    """Return whether something could be read; raise unless it can, or is refused in one line."""
    try:
        read()
    except DpmfError as error:
        if len(str(error).splitlines()) != 1:
            raise AssertionError(f"a refusal of several lines: {error}") from error
        return False
    return True


def read_in_page(folder: Path) -> list[str]:
    """Return what the page makes of releases in folders named 0, 1, 2, …: read, refused, or what went wrong."""
    scripts = folder / "scripts"
    shutil.copytree(Path(site.__file__).with_name("page") / "js", scripts, dirs_exist_ok=True)
    (scripts / "package.json").write_text('{"type": "module"}')
    words = ["node", "--max-old-space-size=512", str(Path(__file__).with_name("page.mjs")), str(scripts), str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    crashed = [f"node ended with {done.returncode}: {done.stderr[-200:]}"] if done.returncode else []
    return [*done.stdout.splitlines(), *crashed]
