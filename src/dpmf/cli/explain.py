"""`dpmf explain`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmf.cli.output import json_option, print_json, print_table, say
from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.model import Release

_FORMATS = ("text", "label", "nist", "opendp-registry")


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="text",
    show_default=True,
    help="All in plain words, a short label, a table after NIST SP 800-226, or a record for OpenDP's registry (YAML).",
)
@click.option(
    "--answers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="JSON file with the answers that --format opendp-registry asks for.",
)
@click.option("--markdown", is_flag=True, help="Print the table of --format nist as Markdown.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the record, or the table as Markdown, to FILE instead.",
)
@json_option
def explain(release: Path, form: str, answers: Path | None, markdown: bool, out: Path | None, as_json: bool) -> None:
    """Explain in plain words what a RELEASE guarantees.

    A release that contradicts itself is refused, as by `dpmf verify`.
    """
    from dpmf.model import Release

    _check_options(form, answers=answers, markdown=markdown, out=out, as_json=as_json)
    loaded = Release.load(release)
    if form == "opendp-registry":
        _record(loaded, str(release), answers, out, as_json)
    elif form == "nist":
        _table(loaded, str(release), markdown, out, as_json)
    elif form == "label":
        _label(loaded, str(release), as_json)
    else:
        _text(loaded, str(release), as_json)


def _check_options(form: str, *, answers: Path | None, markdown: bool, out: Path | None, as_json: bool) -> None:
    """Refuse options that the format has no use for."""
    if answers is not None and form != "opendp-registry":
        raise InvalidArgument("--answers is for --format opendp-registry: no other format asks anything")
    if markdown and (form != "nist" or as_json):
        raise InvalidArgument("--markdown is for --format nist, without --json")
    if out is not None and (form not in ("nist", "opendp-registry") or as_json):
        raise InvalidArgument(
            "--out is for --format nist and opendp-registry, without --json: redirect the output instead"
        )


def _record(release: Release, name: str, answers: Path | None, out: Path | None, as_json: bool) -> None:
    from dpmf.disclosure.answers import read_answers
    from dpmf.disclosure.registry import registry_record
    from dpmf.files import write_text

    record = registry_record(release, {} if answers is None else read_answers(answers), name)
    if as_json:
        questions = [{"answer": key, "question": text} for key, text in record.questions.items()]
        print_json({"record": record.to_json(), "questions": questions})
        return
    if out is None:
        click.echo(record.to_yaml(), nl=False)
    else:
        write_text(out, record.to_yaml())
    if record.questions:
        note = f"open questions: {len(record.questions)}, each a TODO; answer them with --answers FILE"
        click.echo(f"dpmf: {note}", err=True)


def _table(release: Release, name: str, markdown: bool, out: Path | None, as_json: bool) -> None:
    from dpmf.disclosure.nist import COLUMNS, LEVELS, release_evaluation, to_markdown
    from dpmf.files import write_text

    rows = release_evaluation(release, name)
    title = f"{name} after NIST SP 800-226"
    if as_json:
        print_json({"rows": [row.to_json() for row in rows]})
    elif out is not None:
        write_text(out, to_markdown(rows, title))
    elif markdown:
        click.echo(to_markdown(rows, title), nl=False)
    else:
        say(title, "bold")
        for level in LEVELS:
            say("")
            print_table(level, COLUMNS[1:], [row.cells()[1:] for row in rows if row.level == level])


def _label(release: Release, name: str, as_json: bool) -> None:
    from dpmf.disclosure.label import release_label

    label = release_label(release, name)
    if as_json:
        print_json(label.to_json())
        return
    say(label.title, "bold" if label.verdict == "certified" else "bold red")
    for heading, text in label.rows:
        say(f"\n{heading}", "bold")
        say(text)


def _text(release: Release, name: str, as_json: bool) -> None:
    from dpmf.disclosure.explain import explain_release

    guarantee = release.guarantee
    sections = explain_release(release, name=name)
    if as_json:
        words: dict[str, Any] = {section.title: list(section.sentences) for section in sections}
        warning = {} if guarantee.warning is None else {"warning": guarantee.warning}
        facts = {"items": len(release.items), "factors": release.n_factors}
        print_json({**guarantee.to_json(), **warning, **facts, "explanation": words})
        return
    say(f"Guarantee: {guarantee}", "bold" if guarantee.is_private else "bold red")
    for section in sections:
        say(f"\n{section.title}", "bold")
        for sentence in section.sentences:
            say(f"- {sentence}")
