"""`kubesched conformance`: run golden cases and say where we decide otherwise."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubesched.cli.layout import print_table
from kubesched.cli.options import output_without_default_option
from kubesched.cli.printing import bar
from kubesched.errors import SchedulerError

if TYPE_CHECKING:
    from kubesched.tools.conformance.cases import Difference

_SHOWN = 20


@click.command("conformance", epilog="Example:  kubesched conformance tests/conformance -o json")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@output_without_default_option
def command(paths: tuple[Path, ...], output: str) -> None:
    """Run golden cases (.jsonl, .jsonl.gz, folders of them) and compare with what was recorded.

    Exits with 1 if anything differs.
    """
    import msgspec

    from kubesched.tools.conformance.cases import read_cases
    from kubesched.tools.conformance.families import run_case

    families: dict[str, dict[str, int]] = {}
    differences: list[Difference] = []
    cases = list(read_cases(paths))
    if not cases:
        raise SchedulerError(f"{', '.join(map(str, paths))}: no golden cases found (.jsonl or .jsonl.gz)")
    with bar("cases", len(cases)) as done:
        for number, (family, case) in enumerate(cases):
            done(number)
            found = run_case(case)
            row = families.setdefault(family, {"passed": 0, "failed": 0})
            row["failed" if found else "passed"] += 1
            differences += found
    if output == "table":
        _print(families, differences)
    else:
        document = {
            "families": families,
            "differences": [{"case": d.case, "what": d.what, "expected": d.expected, "found": d.found} for d in differences],
        }
        encode = msgspec.yaml.encode if output == "yaml" else msgspec.json.encode
        click.echo(encode(document).decode())
    sys.exit(1 if differences else 0)


def _print(families: dict[str, dict[str, int]], differences: list[Difference]) -> None:
    rows = [(family, str(row["passed"]), str(row["failed"])) for family, row in families.items()]
    total = ("total", *(str(sum(row[name] for row in families.values())) for name in ("passed", "failed")))
    print_table(("family", "passed", "failed"), [*rows, total], right=(1, 2))
    for difference in differences[:_SHOWN]:
        click.echo(str(difference))
    if len(differences) > _SHOWN:
        click.echo(f"... and {len(differences) - _SHOWN} more differences")
