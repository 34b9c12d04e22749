"""`--version` of our programs: which kubesched, which releases of Kubernetes it equals; with `-v` also what it runs on."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import click


def version_options(program: str) -> Callable[[click.Group], click.Group]:
    """Return what gives a group of commands `--version` and `-v`."""

    def show(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
        if is_wanted:
            click.echo("\n".join(_lines(program, ctx.params["verbose"])))
            ctx.exit()

    def add(group: click.Group) -> click.Group:
        # -v is read first, wherever it stands.
        group.params += [
            click.Option(["-v", "verbose"], is_flag=True, is_eager=True, help="With --version: say more."),
            click.Option(["--version"], is_flag=True, expose_value=False, callback=show, help="Show the version and exit."),
        ]
        return group

    return add


def refuse_alone(verbose: bool) -> None:
    """Refuse a `-v` that is not of `--version`: commands have no such option."""
    if verbose:
        raise click.UsageError("-v goes with --version")


def _lines(program: str, verbose: bool) -> list[str]:
    from kubesched.scheduler.config import RELEASES

    equals = " and ".join(f"{major}.{minor}" for major, minor in RELEASES)
    lines: list[Any] = [f"{program} {version('kubesched')}, equal to kube-scheduler {equals}"]
    if verbose:
        from kubesched.scheduler import kernels

        system = f"{platform.system()} {platform.machine()}"
        lines += [
            f"compared with: {', '.join(RELEASES.values())}",
            f"kernels: {kernels.form}" + (f" ({kernels.why_not_compiled})" if kernels.why_not_compiled else ""),
            f"{platform.python_implementation()} {platform.python_version()}, NumPy {version('numpy')}, {system}",
        ]
    return lines
