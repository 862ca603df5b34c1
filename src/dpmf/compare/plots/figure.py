"""What all pictures share: figures, colours, legends, and files. The only module that imports matplotlib, when asked.

Nothing here uses pyplot: no window and no global state.

>>> style_of("als") != style_of("sgld")
True
>>> format_of(Path("picture.SVG"))
'svg'
"""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from dpmf.errors import InvalidArgument, MissingExtra
from dpmf.files import write_bytes
from dpmf.methods import METHODS

# Okabe and Ito's colours: told apart by colour-blind people too; with markers, readable in grey.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", ":", "-.")
FORMATS = ("png", "svg", "pdf")
_DPI = 120
_SALT = "dpmf"  # of the ids in SVG files: the same picture gives the same file
_NO_METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
_LEGEND_DROP = 40  # points from the axes down to a legend: ticks and a label are in between
_HANDLE_INCHES, _LETTER_INCHES, _MOST_COLUMNS = 0.7, 0.07, 3  # of an entry of a legend


def figure(width: float = 7, height: float = 5) -> Any:
    """Return a new, empty figure, its size in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("pictures need matplotlib: pip install 'dpmf[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def axes(ax: Any = None) -> Any:
    """Return the axes that were given, or those of a new figure, in the look that all pictures share."""
    ax = figure().subplots() if ax is None else ax
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def style_of(method: str) -> tuple[str, str]:
    """Return the colour and the marker of a method, the same in every picture."""
    private_first = sorted(METHODS, key=lambda name: not METHODS[name].modes)
    return nth_style(private_first.index(method) if method in METHODS else sum(method.encode()))


def nth_style(place: int) -> tuple[str, str]:
    """Return a colour and a marker for what has no name of its own."""
    return COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]


def status_style(colour: str, claim: bool) -> dict[str, Any]:
    """Return how lines and markers show what stands behind them: solid and filled, or (a claim) dashed and hollow."""
    return {
        "linestyle": "--" if claim else "-",
        "markerfacecolor": "white" if claim else colour,
        "markeredgecolor": colour,
        "color": colour,
    }


def legend_below(ax: Any) -> None:
    """Put a legend below the axes, where it hides no data, in columns if they fit; none if nothing has a label."""
    from matplotlib.transforms import ScaledTranslation

    labels = ax.get_legend_handles_labels()[1]
    if not labels:
        return
    place = ax.get_subplotspec()
    width = ax.figure.get_figwidth() / (place.get_gridspec().ncols if place is not None else 1)
    columns = int(width / (_HANDLE_INCHES + _LETTER_INCHES * max(map(len, labels))))
    down = ScaledTranslation(0, -_LEGEND_DROP / 72, ax.figure.dpi_scale_trans)
    legend = ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=ax.transAxes + down,
        ncols=max(1, min(columns, _MOST_COLUMNS)),
        fontsize="small",
        frameon=False,
        handlelength=3.2,
        borderaxespad=0.0,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)  # the name of a folder may have dollar signs


def log_epsilons(ax: Any, epsilons: list[float]) -> None:
    """Make the x axis a logarithmic one of epsilons, with ticks that read as numbers."""
    ax.set_xscale("log")
    if not epsilons:
        return
    low, high = min(epsilons) / 1.25, max(epsilons) * 1.25
    ax.set_xlim(low, high)
    steps = (1, 2, 5) if high / low < 1e3 else (1,)
    ticks = [digit * 10.0**power for power in range(-12, 13) for digit in steps]
    shown = [tick for tick in ticks if low <= tick <= high] or sorted(set(epsilons))
    ax.set_xticks(shown, labels=[f"{tick:g}" for tick in shown])
    ax.set_xticks([], minor=True)


def format_of(path: Path) -> str:
    """Return the format that a file name asks for."""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise InvalidArgument(f"{path} does not say which format: let it end in .{', .'.join(FORMATS[:-1])} or .pdf")
    return ending


def save(picture: Any, path: Path) -> None:
    """Save a figure in the format that the name ends in, whole or not at all; the same figure gives the same bytes."""
    write_bytes(path, _rendered(picture, format_of(path)))


def as_svg(picture: Any, label: str = "") -> str:
    """Return a figure as an SVG element to be put into a page, as wide as the page lets it be.

    Text stays text. Ids are made from the content, so that several pictures fit on one page.

    Args:
        picture: the figure.
        label: what it shows, for people who do not see it; the titles in it if empty.
    """
    label = label or _label_of(picture)
    text = _rendered(picture, "svg").decode("utf-8")
    text = text[text.index("<svg") :]
    box = re.search(r'viewBox="[^"]*"', text[: text.index(">")])
    assert box is not None
    body = text[text.index(">") + 1 :]
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.DOTALL)  # it would style the whole page
    body = re.sub(r'<g id="[^"]*"', "<g", body)  # names that nothing refers to
    own = hashlib.sha256(text.encode()).hexdigest()[:8]
    body = re.sub(r'( id="|url\(#|href="#)([\w-]+)', rf"\1\2-{own}", body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="100%" {box[0]} '
        f'role="img" aria-label={quoteattr(label)} stroke-linejoin="round" stroke-linecap="butt">'
        f"<title>{escape(label)}</title>{body.strip()}\n"
    )


def _rendered(picture: Any, kind: str) -> bytes:
    from matplotlib import rc_context

    buffer = io.BytesIO()
    chosen: Any = {"svg.fonttype": "none", "svg.hashsalt": _SALT, "pdf.fonttype": 42}
    with rc_context(chosen), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Glyph"
        )  # a title in letters that the font lacks is no reason to fail
        picture.savefig(buffer, format=kind, dpi=_DPI, metadata=_NO_METADATA[kind])
    return buffer.getvalue()


def _label_of(picture: Any) -> str:
    titles = [picture.get_suptitle(), *(ax.get_title() or ax.get_ylabel() for ax in picture.axes)]
    return "; ".join(" ".join(title.split()) for title in titles if title) or "a picture without a title"
