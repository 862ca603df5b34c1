"""`dpmf federate`: the certified protocol between organisations and people's devices."""

from __future__ import annotations

import importlib

import click

_COMMANDS = {
    "keys": "dpmf.cli.federate_agree",
    "agree": "dpmf.cli.federate_agree",
    "sign": "dpmf.cli.federate_agree",
    "invite": "dpmf.cli.federate_agree",
    "explain": "dpmf.cli.federate_agree",
    "recommender": "dpmf.cli.federate_serve",
    "third-party": "dpmf.cli.federate_serve",
    "join": "dpmf.cli.federate_join",
    "simulate-crowd": "dpmf.cli.federate_join",
}


class _Commands(click.Group):
    """A group that imports a command's module when the command is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(_COMMANDS[cmd_name]), cmd_name.replace("-", "_"))
        return command


@click.group(cls=_Commands)
def federate() -> None:
    """Run the certified protocol of an untrusted recommender on a network.

    Two organisations run `recommender` and `third-party`, people run `join`. First, both agree: `keys`, `agree`,
    `sign`, `invite`.
    """
