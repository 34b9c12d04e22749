"""What `kubesched plugins` takes; the work is in `kubesched.cli.plugins`."""

from __future__ import annotations

import click

from kubesched.cli.commands.lazy import runs


@click.group("plugins", short_help="List, start and check plugins.", epilog="Example:  kubesched plugins list")
def command() -> None:
    """List plugins, start one of your own, check it."""


@command.command("list", short_help="List the plugins in the tree.", epilog="Example:  kubesched plugins list -o json")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", help="How to print.")
@runs("kubesched.cli.plugins:run_plugins_list")
def list_() -> None:
    """List the plugins in the tree: where they act, their default weight, what they do."""


@command.command("new", short_help="Write a plugin to start from.", epilog="Example:  kubesched plugins new QuietNodes")
@click.argument("name")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@runs("kubesched.cli.plugins:run_plugins_new")
def new() -> None:
    """Write a one-file plugin to start from, and tests of it beside it."""


@command.command(
    "check", short_help="Hold a plugin to the contract.", epilog="Example:  kubesched plugins check quiet_nodes.py"
)
@click.argument("where")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random clusters.")
@runs("kubesched.cli.plugins:run_plugins_check")
def check() -> None:
    """Hold a plugin (module:Class, file.py:Class or file.py) to the contract on random clusters."""
