"""The reference of the command line has every command and every option of the program."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from docs_tools.cli_reference import MARKER, context_of, describe, prose, reference

from dpmf.cli import _COMMANDS, dpmf

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from commands(found, f"{name} {below}")


def sections() -> dict[str, str]:
    """Return what stands under each heading."""
    parts = re.split(r"^#+ (.*)$", reference(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_page_asks_for_the_reference_once() -> None:
    assert PAGE.read_text(encoding="utf-8").count(MARKER) == 1


def test_help_is_spelt_as_the_program_spells_it() -> None:
    assert all("`-h, --help`" in section for section in sections().values())


def test_every_command_has_a_section() -> None:
    found = sections()
    assert {f"dpmf {name}" for name in _COMMANDS} <= set(found)
    assert set(found) == {name for name, _ in commands(dpmf, "dpmf")}


@pytest.mark.parametrize("name", [name for name, _ in commands(dpmf, "dpmf")])
def test_every_option_and_argument_is_in_its_section(name: str) -> None:
    section, command = sections()[name], dict(commands(dpmf, "dpmf"))[name]
    terms = re.findall(r"^`(.*)`$", section, flags=re.MULTILINE)
    context = click.Context(command, info_name=name)
    for parameter in command.get_params(context):
        if isinstance(parameter, click.Option):
            for spelling in parameter.opts:
                assert any(re.search(rf"(?<![\w-]){spelling}(?![\w-])", term) for term in terms), spelling
            assert prose(" ".join((parameter.help or "").split())) in section
        else:
            assert parameter.make_metavar(context) in section


def test_a_command_that_is_added_is_picked_up() -> None:
    @click.group()
    def program() -> None:
        """Do things."""

    @program.command()
    @click.option("--fresh", metavar="N", default=3, show_default=True, help="See --other; a_b.")
    @click.option("--secret", hidden=True)
    @click.argument("data")
    def added(fresh: int, secret: str, data: str) -> None:
        """Do a new thing."""

    text = "\n".join(describe(program, context_of(program, "program"), level=2))
    assert "### program added\n\nDo a new thing.\n" in text
    assert "```text\nprogram added [OPTIONS] DATA\n```" in text
    assert "`--fresh N`\n:   See `--other`; a\\_b.  \\[default: 3\\]\n" in text
    assert "secret" not in text
