"""`dpmf export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmf.cli.output import json_option, print_json, say
from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.model import Release

_FORMATS = ("numpy", "parquet", "faiss", "usearch", "onnx", "card")


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.option(
    "--to",
    type=click.Choice(_FORMATS),
    required=True,
    help="All arrays; a table with a vector per item; an index of these vectors; a graph from a person's ratings to "
    "lists; or a model card in Markdown.",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder to write; of a card, the file.")
@click.option(
    "--part",
    type=click.Choice(["ratings", "ranking"]),
    help="What there are vectors of: the rating model, which is the default if there is one, or the ranking part.",
)
@click.option("--name", metavar="TEXT", help="What a card calls the release; the name of its folder by default.")
@json_option
def export(release: Path, to: str, out: Path, part: str | None, name: str | None, as_json: bool) -> None:
    """Write a RELEASE in a form that other software reads.

    Vectors have biases folded in, so that inner products order items as the release does. What a form cannot carry is
    said. A release that contradicts itself is refused, as by `dpmf verify`.
    """
    from dpmf.model import Release

    if to == "card" and part is not None:
        raise InvalidArgument("--part means nothing for a card: leave it out")
    if to != "card" and name is not None:
        raise InvalidArgument(f"--name is for a card: leave it out, or write one with --to card instead of {to}")
    loaded = Release.load(release)
    if to == "card":
        _card(loaded, name or release.resolve().name, out, as_json)
        return
    from dpmf.export.files import export as write

    about, files = write(loaded, to, out, part)
    if as_json:
        shown = {key: value for key, value in about.items() if key not in ("format", "version", "guarantee")}
        guarantee = {key: getattr(loaded.guarantee, key) for key in ("epsilon", "delta", "mode", "certified")}
        print_json({**shown, **guarantee, "files": files, "out": str(out)})
        return
    say(f"{', '.join(files)}: {sum(files.values()) / 1e6:.1f} MB, in {out}.")
    for sentence in _told(loaded, about):
        say(sentence)
    say(f"Guarantee: {loaded.guarantee}", "dim" if loaded.guarantee.is_private else "bold red")


def _card(release: Release, name: str, out: Path, as_json: bool) -> None:
    from dpmf.disclosure.card import model_card
    from dpmf.files import write_text

    if out.is_dir():
        raise InvalidArgument(f"--out {out} is a folder: name the file of the card, such as {out / 'README.md'}")
    if out.exists() and not out.read_bytes().startswith(b'---\nlibrary_name: "dpmf"'):
        raise InvalidArgument(f"--out {out} exists and is not a model card: choose another name")
    text = model_card(release, name)
    write_text(out, text)
    if as_json:
        print_json({"to": "card", "out": str(out), "bytes": len(text.encode())})
        return
    say(f"A model card in {out}. Its license is unknown until you fill it in.")


def _told(release: Release, about: dict[str, Any]) -> list[str]:
    """Return how to use what was written, and what it does not have."""
    told = []
    if "query" in about:
        told.append(f"{about['items']:,} vectors of {about['dimensions']} numbers. A query is {about['query']}.")
    if "search" in about:
        told.append(f"After loading the index set expansion_search to {about['search']['expansion_search']}.")
    if "left_out" in about:
        told.append(f"Not in the vectors: {' and '.join(about['left_out'])}.")
    if "agreement" in about:
        share = f"{100 * about['agreement']:.0f} of 100 entries of lists of ten are as dpmf has them"
        told.append(f"For people with one item, {share}.")
    elif about.get("part") == "ratings" and release.ranks and "parts" not in about:
        told.append("Lists are by expected rating; dpmf orders them by the ranking part: --part ranking, or --to onnx.")
    if "outputs" in about:
        told.append(
            f"From {' and '.join(about['inputs'])} to {', '.join(about['outputs'])}; rows of items are in items.csv."
        )
    return told
