"""`kubesched completion`: the script with which a shell completes our commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

PROGRAM = "kubesched"
COMPLETE_VARIABLE = "_KUBESCHED_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
_HOW = {
    "bash": "Bash, for this shell:  source <(kubesched completion bash)",
    "zsh": "Zsh, for this shell:   source <(kubesched completion zsh)",
    "fish": "Fish, for this shell:  kubesched completion fish | source",
}


@click.command(
    "completion",
    help="Print the script with which SHELL completes commands and options.\n\n\b\n" + "\n".join(_HOW.values()),
    epilog="Example:  kubesched completion bash > /etc/bash_completion.d/kubesched",
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    root = click.get_current_context().find_root().command
    found = get_completion_class(shell)
    assert found is not None, f"click has no completion for {shell}"
    # Not `source()`: it asks the installed bash for its version, and the script may be for another machine.
    script = found(root, {}, PROGRAM, COMPLETE_VARIABLE)
    click.echo(script.source_template % script.source_vars())
