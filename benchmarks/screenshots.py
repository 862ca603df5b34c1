"""Pictures of the page for docs/page.md: a release of the synthetic set, in headless Chromium.

    python benchmarks/screenshots.py [--out docs/page] [--users 60000]

They show whatever sans-serif font the machine has; those in the repository were made with DejaVu Sans.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from browser import chromium, hosted, rate
from PIL import Image

from dpmf import Budget, Joint
from dpmf.ratings.synthetic import make
from dpmf.serve.site import export_site

_RATED = {
    "The Silent Promise": 1, "The Last Letter": 1, "The Golden Comet": 4, "The Last Airlock": 4,
    "The Crimson Nebula": 5, "The Paper Pulsar": 5, "The Electric Pulsar": 5,
}  # fmt: skip
_DESKTOP = {"viewport": {"width": 1280, "height": 860}}
_MOST_BYTES = 150_000
_PHONE = {
    "viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True,
}  # fmt: skip


def main() -> None:
    """Train, export, and take pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("docs/page"))
    parser.add_argument("--users", type=int, default=60_000)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    release = Joint(budget=Budget(1.0)).fit(make(arguments.users)).release
    with tempfile.TemporaryDirectory() as folder:
        release.save(Path(folder, "release"))
        export_site(Path(folder, "release"), Path(folder, "site"))
        with hosted(Path(folder, "site")) as address, chromium() as browser:
            for name, options in (("desktop", _DESKTOP), ("phone", _PHONE)):
                for theme in ("light", "dark"):
                    _pictures(browser, address, arguments.out, f"{name}-{theme}", {**options, "color_scheme": theme})


def _pictures(browser: Any, address: str, out: Path, name: str, options: dict[str, Any]) -> None:
    context = browser.new_context(**options)
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("body[data-state=ready]")
    for title, stars in _RATED.items():
        rate(page, title, stars)
    page.mouse.move(0, 0)
    page.evaluate("scrollTo(0, 0)")
    _take(page, out / f"recommendations-{name}.png")
    page.locator("#recommendations .why").first.click()
    page.wait_for_selector("#item-why .total")
    if name in ("desktop-dark", "phone-light"):
        _take(page, out / f"why-{name}.png")
    page.keyboard.press("Escape")
    for view in ("map", "privacy"):
        page.locator(f"nav a[href='#{view}']").click()
        if name in ("desktop-light", "phone-dark"):
            _take(page, out / f"{view}-{name}.png")
    context.close()


def _take(page: Any, path: Path) -> None:
    """Take a picture, and keep it with few colours; a map has rare ones that matter, as long as it is not too large."""
    page.wait_for_timeout(400)
    page.screenshot(path=path)
    with Image.open(path) as picture:
        full = picture.convert("RGB")
    full.save(path, optimize=True)
    if not path.name.startswith("map") or path.stat().st_size > _MOST_BYTES:
        full.quantize(256, kmeans=3, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path} {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
