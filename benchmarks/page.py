"""How long the page takes to load and to follow a rating, in headless Chromium on this machine.

    python benchmarks/page.py [--items 18000] [--factors 64] [--ratings 40] [--loads 5] [--imported 0] [--implicit]

Prints one JSON object. Loading is from the start of the navigation until recommendations are on the page, with an
empty cache. An update is from the change of a rating until the recommendations are in the page's document: fold-in and
scoring in the worker, both ways between the two, and all elements. Painting them, here without a graphics card, waits
for the screen's next frame and is counted apart. Also how much 16-bit factors would change scores.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from browser import chromium, hosted, rate

from dpmf.model import Release, Ridge
from dpmf.privacy import Guarantee
from dpmf.ratings import Items, Scale
from dpmf.serve.site import ABOUT_FILE, RELEASE_FOLDER, export_site

_READY = "body[data-state=ready]"


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--items", type=int, default=18_000)
    parser.add_argument("--factors", type=int, default=64)
    parser.add_argument("--ratings", type=int, default=40)
    parser.add_argument("--loads", type=int, default=5)
    parser.add_argument("--imported", type=int, default=0, help="ratings that are there before any is changed")
    parser.add_argument("--implicit", action="store_true")
    arguments = parser.parse_args()
    release = _release(arguments.items, arguments.factors, implicit=arguments.implicit)
    with tempfile.TemporaryDirectory() as folder:
        release.save(Path(folder, "release"))
        files = export_site(Path(folder, "release"), Path(folder, "site"), accept_unproven=True)
        with hosted(Path(folder, "site")) as address, chromium() as browser:
            loads = [_load(browser, address) for _ in range(arguments.loads)]
            own = _own(release, arguments.imported)
            updates, paints = _updates(browser, address, arguments.ratings, own, implicit=arguments.implicit)
            version = browser.version
    paths = json.loads(files[ABOUT_FILE])["paths"]
    sizes = {name: len(files[path]) for name, path in sorted(paths.items()) if name.startswith(f"{RELEASE_FOLDER}/")}
    page = sum(map(len, files.values())) - sum(sizes.values())
    print(
        json.dumps(
            {
                "chromium": version,
                "items": arguments.items,
                "factors": arguments.factors,
                "imported": arguments.imported,
                "feedback": release.feedback,
                "bytes": sizes,
                "page_bytes": page,
                "load_seconds": {"median": statistics.median(loads), "most": max(loads)},
                "update_ms": {"median": statistics.median(updates), "most": max(updates), "updates": len(updates)},
                "paint_ms": {"median": statistics.median(paints), "most": max(paints)},
                "score_error_of_16_bits": _error_of_16_bits(release),
            },
            indent=1,
        )
    )


def _release(n: int, K: int, *, implicit: bool) -> Release:
    rng = np.random.default_rng(0)
    genres = ("Action", "Comedy", "Drama", "Horror", "Romance", "Thriller|Crime", "Documentary", "Animation|Family")
    return Release(
        items=Items.of(
            np.arange(1, n + 1), [f"A film with a title {j} ({1930 + j % 90})" for j in range(n)],
            [genres[j % len(genres)] for j in range(n)],
        ),
        scale=Scale(0, 1) if implicit else Scale(1, 5),
        mean=0.0 if implicit else 3.6,
        item_factors=rng.normal(0, 0.15, (n, K)).astype(np.float32),
        item_biases=rng.normal(0, 0.3, n).astype(np.float32),
        ridge=Ridge(bias=1.0, factors=4.0),
        configuration={"method": "als"},
        guarantee=Guarantee.none(),
        feedback="implicit" if implicit else "explicit",
        alpha=2.0 if implicit else 0.0,
    )  # fmt: skip


def _load(browser: Any, address: str) -> float:
    """Return seconds from the start of the navigation until the first recommendations are there."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(_READY)
    first: float = page.evaluate("performance.getEntriesByName('update').map((one) => one.startTime + one.duration)[0]")
    context.close()
    return round(first / 1000, 3)


_CHANGES = """async (count) => {
  const rest = () => new Promise((done) => setTimeout(done, 120));
  for (let number = 0; number < count; number++) {
    const card = document.querySelectorAll("#recommendations > .card")[3];
    (card.querySelectorAll("input")[number % 5] ?? card.querySelector(".have")).click();
    await rest();
  }
  return ["update", "paint"].map((name) => performance.getEntriesByName(name).map((one) => one.duration));
}"""


def _own(release: Release, count: int) -> dict[str, Any] | None:
    """Return a file of ratings for the page to import, spread over the catalogue."""
    rng = np.random.default_rng(2)
    items = rng.choice(len(release.items), count, replace=False)
    ratings = [
        {"item": release.items.ids[int(item)], "title": release.items.titles[int(item)], "rating": int(stars)}
        for item, stars in zip(items, rng.integers(1, 6, count), strict=True)
    ]
    content = json.dumps({"format": "dpmf-ratings", "version": 1, "ratings": ratings}).encode()
    return {"name": "own.json", "mimeType": "application/json", "buffer": content} if count else None


def _updates(
    browser: Any, address: str, count: int, own: dict[str, Any] | None, *, implicit: bool
) -> tuple[list[float], list[float]]:
    """Return milliseconds from a change of a rating until the page holds what follows, and until it is painted."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(_READY)
    if own:
        page.set_input_files("#import-file", own)
        page.wait_for_selector("#notice:has-text('imported')")
    for number in range(0 if own else count):
        title = f"A film with a title {number * 37} ("
        if implicit:
            page.fill("#search", title)
            page.locator("#recommendations .have").first.click()
            page.fill("#search", "")
        else:
            rate(page, title, 1 + number % 5)
        page.evaluate("document.activeElement.blur()")
        page.wait_for_selector("#recommendations[aria-busy=false]", state="attached")
    # The ratings above were given to search results; those that count are given with the recommendations in view.
    page.evaluate("performance.clearMeasures()")
    updates, paints = page.evaluate(_CHANGES, count)
    context.close()
    return [round(one, 1) for one in updates], [round(one, 1) for one in paints]


def _error_of_16_bits(release: Release) -> float:
    """Return the greatest change of a score, if factors were rounded to 16 bits, over a few users."""
    rng = np.random.default_rng(1)
    halved = Release(**{**vars(release), "item_factors": release.item_factors.astype(np.float16).astype(np.float32)})
    worst = 0.0
    for count in (1, 5, 20, 80):
        items = rng.choice(len(release.items), count, replace=False)
        ratings = {release.items.ids[int(item)]: float(rng.integers(1, 6)) for item in items}
        if release.is_implicit:
            ratings = dict.fromkeys(ratings, 1.0)
        exact, rough = release.fold_in(ratings), halved.fold_in(ratings)
        change = release.item_factors @ exact.factors - halved.item_factors @ rough.factors + exact.bias - rough.bias
        worst = max(worst, float(np.abs(change).max()))
    return worst


if __name__ == "__main__":
    main()
