"""A model card of a release: Markdown, with the metadata that the Hugging Face Hub reads, from the release alone.

>>> import numpy as np
>>> from dpmf.model import Ridge
>>> from dpmf.privacy import Guarantee
>>> from dpmf.ratings import Items, Scale
>>> release = Release(
...     items=Items.of([1, 2]), scale=Scale(1, 5), mean=3.0, item_factors=np.ones((2, 2), np.float32),
...     item_biases=np.zeros(2, np.float32), ridge=Ridge(1.0, 1.0), configuration={"method": "sgd"},
...     guarantee=Guarantee.none())
>>> print(model_card(release, "Films").splitlines()[1])
library_name: "dpmf"
"""

from __future__ import annotations

import json
from typing import Any

from dpmf.disclosure.explain import verified_facts
from dpmf.disclosure.label import label_of
from dpmf.disclosure.markdown import escaped, table
from dpmf.disclosure.yaml import Remark, to_yaml
from dpmf.model import Release
from dpmf.model.release_json import FILES
from dpmf.privacy.explain import Facts, explain_guarantee
from dpmf.version import __version__

_TAGS = ("recommender-system", "collaborative-filtering", "matrix-factorization")
_USE = """import dpmf

release = dpmf.Release.load("release/")  # the folder with both files
me = release.fold_in({mine})
for one in me.recommend(k=10):
    print(one.title, one.score)"""


def model_card(release: Release, name: str) -> str:
    """Return the card of a release called `name`; `NotVerified` if its epsilon does not follow from its events."""
    facts, guarantee = verified_facts(release, name), release.guarantee
    label = label_of(guarantee, facts)
    metadata: dict[str, Any] = {
        "library_name": "dpmf",
        "license": Remark("unknown", "whoever publishes the release decides"),
        "tags": [*_TAGS, *(["differential-privacy"] if guarantee.certified else [])],
    }
    lines = ["---", to_yaml(metadata) + "---", "", f"# {escaped(name)}", "", f"**{escaped(label.title)}.**"]
    lines += ["", *_about(release, facts), "", "## How to use it", "", *_usage(release)]
    lines += ["", "## Privacy", "", *table(("", ""), label.rows)]
    for section in explain_guarantee(guarantee, facts):
        lines += [
            "",
            f"### {escaped(section.title)}",
            "",
            *(f"- {escaped(sentence)}" for sentence in section.sentences),
        ]
    lines += ["", "## How it was trained", "", *table(("setting", "value"), _settings(release))]
    lines += ["", "## How good it is", "", _ACCURACY, "", "## Limits", "", *(f"- {one}" for one in _limits(facts))]
    return "\n".join([*lines, "", f"Written by dpmf {__version__} from the release itself.", ""])


def _about(release: Release, facts: Facts) -> list[str]:
    can = [
        what for what, does in (("orders lists", release.ranks), ("predicts ratings", release.predicts_ratings)) if does
    ]
    what = " and ".join(can) or "scores which items people may have"
    scale = "" if release.is_implicit else f" on the scale {facts.scale}"
    return [
        f"A recommender of {facts.n_items:,} items that {what}{scale}. It holds no user and no rating: people compute "
        "their own recommendations from their own ratings, on their own device. It is in two files, "
        f"`{FILES[0]}` and `{FILES[1]}`.",
    ]


def _usage(release: Release) -> list[str]:
    """Return how to fold in and recommend, with the first items of the catalogue."""
    ids = [release.items.ids[place] for place in range(min(2, len(release.items)))]
    rated = ids if release.is_implicit else dict.fromkeys(ids, release.scale.hi)
    # JSON writes texts of Python; keys of an object would all become texts.
    shown = ", ".join(
        json.dumps(item, ensure_ascii=False) + ("" if release.is_implicit else f": {release.scale.hi:g}")
        for item in rated
    )
    mine = f"[{shown}]" if release.is_implicit else "{" + shown + "}"
    return [
        "```python",
        *_USE.format(mine=mine).splitlines(),
        "```",
        "",
        "`dpmf verify release/` recomputes its guarantee, and `dpmf serve release/` serves a page that recommends.",
    ]


def _settings(release: Release) -> list[tuple[str, str]]:
    known = {name: value for name, value in release.configuration.items() if value is not None and name != "plan"}
    return [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in known.items()]


_ACCURACY = (
    "The release does not say, on purpose: errors on held-out ratings are computed from people's ratings without "
    "noise, and no guarantee covers them. Measure it on ratings of your own with `dpmf evaluate release/ DATA`."
)


def _limits(facts: Facts) -> list[str]:
    limits = ["Items that few people rated are known least: their numbers are mostly prior and noise."]
    if facts.n_ranked is not None and facts.n_ranked < facts.n_items:
        rest = facts.n_items - facts.n_ranked
        limits.append(f"The ranking knows {facts.n_ranked:,} items; the other {rest:,} follow by popularity.")
    limits.append("Items outside the catalogue cannot be recommended, and say nothing about a person who rated them.")
    limits.append("It repeats what was popular with those who took part, whoever they were.")
    return limits
