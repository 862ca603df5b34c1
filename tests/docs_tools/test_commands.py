"""Commands that pages show exist with their options, and those of two tutorials work."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from docs_tools.cli_reference import context_of

from dpmf.cli import dpmf
from dpmf.ratings.synthetic import make

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = [
    *TUTORIALS,
    ROOT / "README.md",
    *(
        ROOT / "docs" / f"{name}.md"
        for name in ("index", "quickstart", "guarantees", "choosing", "compare", "joint", "ease")
    ),
]
TRAIN = "train ratings.csv --scale 1:5 --items items.csv --epsilon 9 --for ratings --out release"
SMALLER = {
    "--users-about 3000": "--users-about 400",
    "--epsilon 5": "--epsilon 40",
    "--cap 8": "--cap 60",
}  # for few people
Command = Callable[..., subprocess.CompletedProcess[str]]


def lines_of(page: Path) -> list[str]:
    """Return the shell commands in the code of a page, without comments."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    blocks = [block for language, block in found if language in ("", "sh")]
    lines = [line.split("   #")[0].strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in lines if re.match(r"(dpmf|printf|openssl) ", line) and "…" not in line]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_options_exist(page: Path) -> None:
    commands = [shlex.split(line, comments=True)[1:] for line in lines_of(page) if line.startswith("dpmf ")]
    assert commands
    for words in commands:
        command: click.Command = dpmf
        context = context_of(dpmf, "dpmf")
        while isinstance(command, click.Group):
            found = command.get_command(context, words.pop(0))
            assert found is not None, words
            command, context = found, context_of(found, found.name or "", context)
        command.make_parser(context).parse_args(words)


def test_an_option_that_does_not_exist_is_found() -> None:
    train = dpmf.get_command(context_of(dpmf, "dpmf"), "train")
    assert train is not None
    with pytest.raises(click.NoSuchOption):
        train.make_parser(context_of(train, "train")).parse_args(["DATA", "--epsilons", "1"])


@pytest.mark.parametrize("tutorial", ["recommender", "privacy"])
def test_a_tutorial_works(tutorial: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files()
    if tutorial == "privacy":  # which is about a release that somebody else made
        shown = command(*shlex.split(TRAIN))
        assert shown.returncode == 0
    for line in lines_of(ROOT / "docs" / "tutorials" / f"{tutorial}.md"):
        if line.startswith("dpmf audit"):  # has tests of its own
            continue
        if line.startswith("dpmf "):
            for here, there in SMALLER.items():
                line = line.replace(here, there)
            done = command(*shlex.split(line)[1:])
            assert done.returncode == 0, (line, done.stderr)
        else:
            subprocess.run(line, shell=True, check=True, capture_output=True)
    assert Path("release/release.json").is_file()
    assert tutorial == "privacy" or Path("site/index.html").is_file()


def write_files() -> None:
    """Write ratings and items as the tutorials have them."""
    ratings = make(400, 60)
    catalogue, names = ratings.catalogue, ratings.user_ids.array[ratings.users]
    rows = zip(names, ratings.items, ratings.values, strict=True)
    items = zip(catalogue.ids, catalogue.titles, catalogue.genres, strict=True)
    lines = [f"{user},{item + 1},{value:g}" for user, item, value in rows]
    Path("ratings.csv").write_text("\n".join(["user,item,rating", *lines]))
    Path("items.csv").write_text("\n".join(["item,title,genres", *(",".join(map(str, one)) for one in items)]))
