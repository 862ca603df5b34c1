"""Another program in a Python process of its own: peers print, warn, and want settings from the start of the process.

>>> ask("a peer", ["-c", "print('RESULT', [1.5, 2])"])
[1.5, 2]
>>> ask("no_such_peer", ["-c", "import no_such_peer"]) is None
True
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from typing import Any


def ask(peer: str, arguments: list[str], environment: dict[str, str] | None = None) -> Any:
    """Run Python with these arguments and return the JSON that it prints after the word RESULT, or None."""
    # -P: what happens to lie in the current folder is no peer.
    line = [sys.executable, "-P", "-W", "ignore", *arguments]
    surroundings = {**os.environ, **(environment or {})}
    done = subprocess.run(line, env=surroundings, capture_output=True, text=True, check=False)
    results = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if results:
        return json.loads(results[-1].removeprefix("RESULT "))
    if f"No module named '{peer}" not in done.stderr:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        logging.getLogger(__name__).warning("no figures for %s, which failed: %s", peer, reason)
    return None
