"""The command line: parse and print, nothing else.

Commands are found by name and imported when they are called, and what they need is imported when they run, so that
`dpmf --help` answers at once.

>>> {"demo", "federate", "train", "verify"} <= set(_COMMANDS)
True
"""

from __future__ import annotations

import errno
import importlib
import io
import logging
import os
import re
import signal
import sys

import click

from dpmf import __version__
from dpmf.addresses import check_addresses
from dpmf.errors import DpmfError

_COMMANDS = {
    "demo": "dpmf.cli.demo",
    "train": "dpmf.cli.train",
    "evaluate": "dpmf.cli.evaluate",
    "recommend": "dpmf.cli.recommend",
    "recommend-all": "dpmf.cli.recommend_all",
    "similar": "dpmf.cli.recommend",
    "explain": "dpmf.cli.explain",
    "verify": "dpmf.cli.verify",
    "audit": "dpmf.cli.audit",
    "ledger": "dpmf.cli.ledger",
    "export": "dpmf.cli.export",
    "export-site": "dpmf.cli.export_site",
    "compare": "dpmf.cli.compare",
    "simulate": "dpmf.cli.simulate",
    "federate": "dpmf.cli.federate",
    "serve": "dpmf.cli.serve",
    "data": "dpmf.cli.data",
    "plot": "dpmf.cli.plot",
    "bench": "dpmf.cli.bench",
    "doctor": "dpmf.cli.doctor",
}
_NO_ARGUMENTS = getattr(click.exceptions, "NoArgsIsHelpError", ())  # click 8.1 prints the help by itself
_OPTIONS = {  # what the library calls an argument, as a regular expression, and how it is given here
    r"item_columns=\{'(\w+)': …\}": r"--item-columns \1=NAME",
    r"columns=\{'(\w+)': …\}": r"--columns \1=NAME",
    r"scale=\((\S+), (\S+)\)": r"--scale \1:\2",
    r"\bitem_(columns|delimiter|encoding)(=…)?": r"--item-\1",
    r"\bitem_features='([^']*)'": r"--item-features \1",
    r"\bitem_features(=…| cannot| out)": r"--item-features\1",
    r"--item-features=…": "--item-features",
    r"\bitems=…": "--items",
    r"\bdelimiter=…": "--delimiter",
    r"\bheader=True or header=False": "--header or --no-header",
    r"\bheader=False": "--no-header",
    r"\bmissing=(\S+)": r"--missing \1",
    r"\bescape='\\'": r"--escape '\\'",
    r"\bquotes=False": "--no-quotes",
    r"\b(encoding|escape)='([^']*)'": r"--\1 \2",
    r"\b(encoding)=…": r"--\1",
    r"\bfeedback='(\w+)', by EASE or ALS": r"--feedback \1, and --method ease or als",
    r"\bfeedback='(\w+)'": r"--feedback \1",
    r"\bhow='(\w+)'": r"--split \1",
    r"\bleading=(-?\d+)": r"--leading \1",
    r"\busers_about=(-?\d+)": r"--users-about \1",
    r"\bbad_rows='(\w+)'": r"--bad-rows \1",
    r"\blayout='(\w+)'": r"--layout \1",
    r"\bduplicates='(\w+)'": r"--duplicates \1",
    "count=plays, or leave it out": "--columns count=plays, or leave it out",
    r"cluster '([^']*)' is not known": r"--cluster \1 is not known",
    r"workers=(-?\d+):": r"--workers \1:",
    "items_public=True": "--items-public",
    "accept_unproven=True": "--accept-unproven",
    "or insist with allow_large_delta=True": "or let `dpmf train --allow-large-delta` insist",
    r"\(public=True\)": "(--profiles-public)",
    r"\bpart='(\w+)'": r"--part \1",
    r"\bto='(\w+)'": r"--to \1",
    r"\b(encoding|escape|layout|leading|quotes|delimiter) is for delimited": r"--\1 is for delimited",
    r"\bbad_rows is for delimited": "--bad-rows is for delimited",
    r"^(epsilon|delta)=": r"--\1 ",
    r"\bwith delta=": "with --delta ",
    r"^n_(factors|epochs|threads)=": r"--\1 ",
    "or None for all CPUs": "or leave it out for all CPUs",
    r"\bneighbours='([\w-]+)'": r"--neighbours \1",
    r"\b(moments|counts|solver|noise|storage|centering)='(\w+)'": r"--set \1=\2",
}
_ROOM, _ROOM_OF_THREAD = 2**29, 2**28  # addresses for libraries: on two processors 650 MiB were seen to do
_FAILED = 1
_INTERRUPTED = 130


class _InOptions(logging.Formatter):
    """Messages in the words of the command line."""

    def format(self, record: logging.LogRecord) -> str:
        return _with_options(super().format(record))


class _Commands(click.Group):
    """A group that imports a command's module when the command is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(_COMMANDS[cmd_name]), cmd_name.replace("-", "_"))
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpmf")
def dpmf() -> None:
    """Differentially private matrix factorization.

    Train a recommender on people's ratings, publish numbers about items only, and let everybody compute their own
    recommendations. Start with `dpmf demo`.
    """
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_InOptions("dpmf: %(message)s"))
    # Libraries start a thread on each processor that this process may use.
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    check_addresses(_ROOM, per_thread=_ROOM_OF_THREAD, n_threads=processors)


def _interrupt(*_: object) -> None:
    """Raise KeyboardInterrupt, unless one is on its way already: what cleans up after it must not be cut short.

    An interrupt that got lost, as in a finalizer, is no longer on its way, so the next signal raises another.
    """
    error = sys.exception()
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return
        error = error.__context__
    raise KeyboardInterrupt


def _handle_signals() -> None:
    """Let a polite kill clean up like Ctrl-C: temporary folders may hold people's ratings."""
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else a script has its background jobs ignore it
        signal.signal(signal.SIGINT, _interrupt)


def main() -> None:
    """Run the program: one line and a non-zero exit for everything that goes wrong."""
    _handle_signals()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a sign that the terminal cannot show is no reason to fail
    try:
        dpmf.main(standalone_mode=False)
    except click.ClickException as error:
        if isinstance(error, _NO_ARGUMENTS):
            click.echo(error.format_message())
            sys.exit(error.exit_code)
        _fail(error.format_message(), error.exit_code)
    except DpmfError as error:
        _fail(_with_options(str(error)), _FAILED)
    except (KeyboardInterrupt, click.Abort):
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # all is cleaned up, and only the interpreter is left to end
        _fail("interrupted; nothing half-written was left behind", _INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone; leave quietly, as other tools do.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_FAILED)
    except MemoryError:
        _fail("out of memory: use fewer factors, or less data at a time", _FAILED)
    except ImportError as error:  # an extra that is missing is a DpmfError
        _fail(f"a library cannot be loaded, for lack of memory or because it is damaged: {error}", _FAILED)
    except OSError as error:
        hint = ": free some space and run the command again" if error.errno == errno.ENOSPC else ""
        where = f" ({error.filename})" if error.filename else ""
        _fail(f"{error.strerror or error}{where}{hint}", _FAILED)


def _with_options(message: str) -> str:
    for argument, option in _OPTIONS.items():
        message = re.sub(argument, option, message)
    return message


def _fail(message: str, code: int) -> None:
    click.echo(f"dpmf: {' '.join(message.splitlines())}", err=True)
    sys.exit(code)
