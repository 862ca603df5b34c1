"""`dpmf explain --format …`: labels, tables and records, printed or written, and one line for what cannot be."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpmf.model import Release
from dpmf.privacy import Budget, GaussianEvent, Guarantee

Answer = Callable[..., dict[str, Any]]
Command = Callable[..., subprocess.CompletedProcess[str]]

PROMISE = Guarantee.certified_by(Budget(1.0), [GaussianEvent("item sums", 5.0, 1, 40)], releases=["item factors"])


@pytest.fixture
def folder(release: Release, tmp_path: Path) -> Path:
    """Return a folder with a certified release."""
    replace(release, guarantee=PROMISE).save(tmp_path / "release")
    return tmp_path / "release"


def test_a_record_is_printed_and_written(command: Command, answer: Answer, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_text('{"name": "Films for you", "number_of_privacy_units": 60000}')
    asked = ("explain", folder, "--format", "opendp-registry", "--answers", "answers.json")
    printed = command(*asked)
    assert printed.returncode == 0
    assert printed.stderr == "dpmf: open questions: 17, each a TODO; answer them with --answers FILE\n"
    record = yaml.safe_load(printed.stdout)
    assert record["deployment"]["basic"]["name"] == "Films for you"
    assert record["deployment"]["privacy_loss"]["number_of_privacy_units"] == 60000
    written = command(*asked, "--out", "record.yaml")
    assert (written.returncode, written.stdout) == (0, "")
    assert (tmp_path / "record.yaml").read_text(encoding="utf-8") == printed.stdout
    report = answer(*asked)
    assert report["record"] == record
    assert len(report["questions"]) == 17
    assert {"answer": "intended_use", "question": "What is it to be used for, and by whom?"} in report["questions"]


def test_the_table_is_printed_in_three_forms(command: Command, answer: Answer, folder: Path, tmp_path: Path) -> None:
    asked = ("explain", folder, "--format", "nist")
    rows = answer(*asked)["rows"]
    shown, markdown = command(*asked).stdout, command(*asked, "--markdown").stdout
    for row in rows:
        assert row["aspect"] in shown
        assert row["not_covered"] in shown
        assert f"| {row['aspect']} | {row['status']} |" in markdown
    assert command(*asked, "--out", "table.md").stdout == ""
    assert (tmp_path / "table.md").read_text(encoding="utf-8") == markdown


def test_the_label_is_that_of_the_page(command: Command, answer: Answer, folder: Path, release: Release) -> None:
    from dpmf.serve.about import about_release

    label = answer("explain", folder, "--format", "label")
    assert label == about_release(Release.load(folder))["label"]
    shown = command("explain", folder, "--format", "label").stdout
    assert label["title"] in shown
    for row in label["rows"]:
        assert f"{row['heading']}\n{row['text']}\n" in shown
    release.save("open")
    assert command("explain", "open", "--format", "label").stdout.startswith("Not private\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "pdf"], "'pdf' is not one of 'text', 'label', 'nist', 'opendp-registry'"),
        (["--format", "opendp-registry", "--answers", "none.json"], "none.json is missing"),
        (["--format", "opendp-registry", "--answers", "odd.json"], "odd.json: 'titel' is not asked: the questions are"),
        (["--format", "opendp-registry", "--answers", "torn.json"], "torn.json is damaged: it is not JSON"),
        (["--format", "nist", "--answers", "odd.json"], "--answers is for --format opendp-registry"),
        (["--markdown"], "--markdown is for --format nist"),
        (["--out", "text.txt"], "--out is for --format nist and opendp-registry"),
        (["--format", "opendp-registry", "--out", "nowhere/record.yaml"], "No such folder"),
        (["--format", "opendp-registry", "--out", "."], "is a directory"),
    ],
)
def test_what_cannot_be_done_ends_with_one_line(
    command: Command, folder: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    (tmp_path / "odd.json").write_text('{"titel": "x"}')
    (tmp_path / "torn.json").write_text('{"name": ')
    before = sorted(tmp_path.rglob("*"))
    done = command("explain", folder, *words)
    assert done.returncode != 0
    assert message in done.stderr
    assert (done.stderr.count("\n"), done.stdout) == (1, "")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("form", ["label", "nist", "opendp-registry"])
def test_a_damaged_release_is_not_disclosed(command: Command, folder: Path, form: str) -> None:
    content = bytearray((folder / "release.safetensors").read_bytes())
    content[-20] ^= 1
    (folder / "release.safetensors").write_bytes(content)
    done = command("explain", folder, "--format", form)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "is damaged" in done.stderr


def test_a_release_that_is_not_private_is_not_registered(command: Command, release: Release) -> None:
    release.save("open")
    done = command("explain", "open", "--format", "opendp-registry", "--out", "record.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "dpmf: open is not private: a registry of differential privacy has no place for it\n"
    assert not Path("record.yaml").exists()


@pytest.mark.parametrize("form", ["label", "nist", "opendp-registry"])
def test_no_format_commands_the_terminal(command: Command, release: Release, form: str) -> None:
    evil = {"method": "\x1b[2Jals\r"}
    replace(release, guarantee=PROMISE, configuration=evil).save("evil")
    for words in ((), ("--markdown",) if form == "nist" else ("--json",)):
        shown = command("explain", "evil", "--format", form, *words).stdout
        assert shown
        assert not {"\x1b", "\r"} & set(shown)
