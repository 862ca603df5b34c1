"""Files and inline pictures: formats, sameness, nothing from outside."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from dpmf.compare.plots.figure import COLOURS, MARKERS, as_svg, axes, figure, save, style_of
from dpmf.errors import InvalidArgument

pytest.importorskip("matplotlib")


def picture(height: float = 1.0) -> Any:
    ax = axes()
    ax.plot([1, 2], [height, 2], "o-", label="<one>")
    ax.set(title="A & B", xlabel="ε per user")
    ax.legend()
    return ax.figure


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.PDF", b"%PDF")])
def test_the_ending_chooses_the_format_and_the_same_picture_gives_the_same_bytes(
    name: str, start: bytes, tmp_path: Path
) -> None:
    save(picture(), tmp_path / name)
    first = (tmp_path / name).read_bytes()
    assert first.startswith(start)
    save(picture(), tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["picture", "picture.gif", "picture.png.txt"])
def test_other_formats_are_refused_and_leave_nothing(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"\.png, \.svg or \.pdf"):
        save(picture(), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_an_inline_picture_is_one_svg_element_that_scales_and_is_described() -> None:
    text = as_svg(picture())
    root = ET.fromstring(text)
    assert text.startswith("<svg")
    assert (root.tag, root.get("width"), root.get("height")) == ("{http://www.w3.org/2000/svg}svg", "100%", None)
    assert root.get("viewBox") == "0 0 504 360"
    assert (root.get("role"), root.get("aria-label"), root[0].text) == ("img", "A & B", "A & B")
    assert as_svg(picture(), label='"x" < y').count("&lt; y") == 2


def test_an_inline_picture_keeps_text_and_has_no_metadata_and_nothing_from_outside() -> None:
    text = as_svg(picture())
    assert "ε per user" in text
    assert "&lt;one&gt;" in text
    assert not re.search(r"<metadata|<!DOCTYPE|<\?xml|Matplotlib|<style|<script", text)
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"]
    targets = re.findall(r'href="([^"]*)"', text) + re.findall(r"url\(([^)]*)\)", text)
    assert targets
    assert all(target.startswith("#") for target in targets)


def test_ids_are_deterministic_complete_and_apart() -> None:
    one, same, other = as_svg(picture()), as_svg(picture()), as_svg(picture(1.5))
    assert one == same
    ids, used = (set(re.findall(pattern, one)) for pattern in (r' id="([^"]*)"', r'(?:url\(#|href="#)([^")]*)'))
    assert ids == used != set()
    assert not ids & set(re.findall(r' id="([^"]*)"', other))


def test_methods_are_told_apart_by_colour_and_by_marker() -> None:
    styles = [style_of(method) for method in ("als", "sgld", "gaussian", "sketch", "objective", "sgd")]
    assert len({colour for colour, _ in styles}) == len({marker for _, marker in styles}) == len(styles)
    assert style_of("something new") in zip(COLOURS, MARKERS, strict=True)


def test_figures_have_the_size_that_is_asked_for() -> None:
    assert tuple(figure(3, 2).get_size_inches()) == (3, 2)
