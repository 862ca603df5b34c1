"""The modules with which a page takes part in an agreement, on a blank page."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any

from dpmf.serve.assets import join_files, page_files

from .host import Host

FOLDER = "joining"


class Joining:
    """A blank page that can import the modules; a context manager.

    Attributes:
        page: Playwright's own.
        base: the address of the folder of the modules.
    """

    def __init__(self, browser: Any, host: Host) -> None:
        sources = {**page_files(), **join_files()}
        host.files |= {f"{FOLDER}/{name}": content for name, content in sources.items()}
        self.base = f"{host.address}/{FOLDER}/js/federated"
        self._blank = f"{host.address}/blank.html"
        self._context = browser.new_context()
        self._context.set_default_timeout(300_000)  # milliseconds; machines may be busy
        self.page = self._context.new_page()
        self.page.goto(self._blank)

    def run(self, modules: list[str], body: str, vectors: Any = None) -> Any:
        """Run the body of an asynchronous function with all that these modules export, and return what it returns."""
        names = [name for module in modules for name in exported(module)]
        taken = ", ".join(dict.fromkeys(names))
        script = f"""async ([base, modules, vectors]) => {{
          const found = await Promise.all(modules.map((name) => import(`${{base}}/${{name}}.js`)));
          const {{ {taken} }} = Object.assign({{}}, ...found);
          {body}
        }}"""
        return self.page.evaluate(script, [self.base, modules, vectors])

    def reload(self) -> None:
        """Leave the page, and open it again."""
        self.page.goto(self._blank)

    def __enter__(self) -> Joining:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._context.close()


def exported(module: str) -> list[str]:
    """Return the names that a module exports."""
    source = join_files()[f"js/federated/{module}.js"].decode()
    return re.findall(r"^export (?:async )?(?:const|class|function) (\w+)", source, re.MULTILINE)
