"""Doctests in docstrings are shown as code."""

from __future__ import annotations

from docs_tools.doctests import fenced


def test_every_block_gets_its_own_fence() -> None:
    docstring = "Purpose.\n\n>>> a = f(\n...     1)\n>>> a\n1\n\nMore words.\n\n>>> b\n2\n"
    assert fenced(docstring) == (
        "Purpose.\n\n```pycon\n>>> a = f(\n...     1)\n>>> a\n1\n```\n\nMore words.\n\n```pycon\n>>> b\n2\n```"
    )


def test_what_has_none_stays_as_it_is() -> None:
    docstring = "Return x >>> y.\n\nArgs:\n    x: shifted, as in `x >>> y`.\n"
    assert fenced(docstring) == docstring
