"""Records what releases promise to keep: public names, commands and their options, flags, JSON documents and metrics.

In: the code, and commands run on docs/examples. Out: tests/unit/promise.txt, a line for each promise. `make promise` writes it
anew. What is new needs no line there. What is gone or different needs a line in CHANGELOG.md, under the newest heading, that
names it (GOVERNANCE.md); a test compares.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator
from enum import EnumType
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner

import kubesched
import kubesched.contrib
import kubesched.testing
from kubesched import Plugin
from kubesched.cli import cli
from kubesched.server.options.usage import ALL_FLAGS
from kubesched.telemetry.metrics import FAMILIES

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "unit" / "promise.txt"
_FIELD = re.compile(r"[a-z][A-Za-z0-9]*|[a-z][a-z0-9_]*")

SHOP, DEMO = "--snapshot docs/examples/shop-cluster.yaml", "--snapshot docs/examples/demo.jsonl.gz"
DOCUMENTS = {
    "why POD": f"why shop/checkout-7 {SHOP} -o json",
    "why": f"why {SHOP} -o json",
    "plan": f"plan -f docs/examples/launch.yaml {DEMO} -o json",
    "plan --node-groups": "plan -f docs/examples/node-groups-app.yaml --snapshot docs/examples/node-groups-cluster.yaml "
    "--node-groups docs/examples/node-groups.yaml -o json",
    "capacity": f"capacity -f docs/examples/launch.yaml --workload Deployment/shop {DEMO} -o json",
    "simulate": "simulate docs/examples/launch.yaml -o json",
    "compare": f"compare default docs/examples/packing.yaml {DEMO} --reschedule -o json",
    "conformance": "conformance tests/conformance/celmatrix.jsonl.gz -o json",
    "bench engine": "bench engine --nodes 20 --init 5 --pods 10 -o json",
    "plugins list": "plugins list -o json",
}
"""Documents, and the commands that print them."""


def names() -> Iterator[str]:
    """Yield the names that can be imported from our public packages: with signatures, and for classes with their members."""
    for package in (kubesched, kubesched.testing):
        for name in package.__all__:
            yield from _described(f"{package.__name__}.{name}", getattr(package, name))
    for module in pkgutil.iter_modules(kubesched.contrib.__path__):
        found = importlib.import_module(f"kubesched.contrib.{module.name}")
        for name, value in vars(found).items():
            if isinstance(value, type) and issubclass(value, Plugin) and value.__module__ == found.__name__ and name[0] != "_":
                yield f"name {found.__name__}.{name}"


def _described(path: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield from _called(path, value)
        for name, member in inspect.getmembers_static(value):
            if name.startswith("_") or not _is_ours(value, name):
                continue
            function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
            yield from _called(f"{path}.{name}", function) if inspect.isfunction(function) else [f"name {path}.{name}"]
    elif inspect.isfunction(value):
        yield from _called(path, value)
    else:
        yield f"name {path}"


def _is_ours(owner: type, name: str) -> bool:
    return any(name in vars(base) for base in owner.__mro__ if base.__module__.startswith("kubesched"))


def _called(path: str, value: Any) -> Iterator[str]:
    """Yield what must be given to call something, in order, and what may be. One more that may be given is a new line."""
    if isinstance(value, EnumType):
        yield f"name {path}"
        return
    parameters = inspect.signature(value).parameters.values()
    must = [str(one.replace(annotation=one.empty)) for one in parameters if one.default is one.empty]
    yield f"name {path}({', '.join(must)})"
    for one in parameters:
        if one.default is not one.empty:
            yield f"parameter {path} {one.name}{' (by name)' if one.kind is one.KEYWORD_ONLY else ''}"


def commands() -> Iterator[str]:
    """Yield the commands, their arguments and options, and the flags of `run`."""
    with click.Context(cli) as context:
        yield from _commands(cli, "kubesched", context)
    for flag in ALL_FLAGS:
        yield f"flag --{flag.name}"


def _commands(command: click.Command, path: str, context: click.Context) -> Iterator[str]:
    yield f"command {path}"
    for parameter in command.params:
        shown = " ".join(sorted([*parameter.opts, *parameter.secondary_opts], key=lambda word: (-len(word), word)))
        choices = f" {{{','.join(map(str, parameter.type.choices))}}}" if isinstance(parameter.type, click.Choice) else ""
        kind = "option" if isinstance(parameter, click.Option) else "argument"
        yield f"{kind} {path} {shown}{choices}"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _commands(inner, f"{path} {name}", context)


def documents() -> Iterator[str]:
    """Yield the fields of the documents that commands print for programs."""
    for name, line in DOCUMENTS.items():
        done = CliRunner().invoke(cli, line.split())
        try:
            shown = json.loads(done.stdout)
        except ValueError:
            sys.exit(f"kubesched {line}: {done.output or done.exception}")
        yield from (f"json {name}: {path}" for path in sorted(set(_paths(shown, ""))))


def _paths(value: Any, path: str) -> Iterator[str]:
    """Yield the fields in a value and what they hold. A mapping by names, such as nodes, is `{}`."""
    if isinstance(value, dict):
        is_record = all(_FIELD.fullmatch(key) for key in value)
        for key, inner in value.items():
            yield from _paths(inner, f"{path}.{key}" if is_record else f"{path}{{}}")
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner, f"{path}[]")
    elif value is not None:
        kind = "boolean" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "text"
        yield f"{path} {kind}"


def metrics() -> Iterator[str]:
    """Yield the families of metrics, with kind, labels and stability."""
    for family in FAMILIES:
        yield f"metric {family.name}{{{','.join(family.labels)}}} {family.kind.value} {family.stability}"


def surface() -> list[str]:
    """Return all of it, sorted."""
    return sorted({*names(), *commands(), *documents(), *metrics()})


def unexplained(recorded: Iterable[str], found: Iterable[str], changes: str) -> list[str]:
    """Return promises that are recorded, no longer kept, and not named (`in backticks`) in a text of changes."""
    kept = set(found)
    return [line for line in recorded if line not in kept and f"`{subject(line)}" not in changes]


def subject(line: str) -> str:
    """Return what the CHANGELOG must name for a line: `Plugin.filter`, `--config`, `refusals[].plugin`, a metric."""
    kind, _, rest = line.partition(" ")
    if kind in ("name", "parameter"):
        return re.split(r"[ (]", rest)[0].removeprefix("kubesched.")
    if kind in ("flag", "metric"):
        return re.split(r"[ {]", rest)[0]
    if kind == "json":
        return rest.partition(": ")[2].split(" ")[0].lstrip(".")
    return next((word for word in rest.split() if word.startswith("--")), rest.removeprefix("kubesched "))


def without_replacement(command: click.Command, path: str = "") -> Iterator[str]:
    """Yield the commands and options that are deprecated and do not say what to use instead (kubesched/deprecation.py)."""
    for name, deprecation in [
        (path, command.deprecated),
        *((f"{path} {one.opts[0]}", one.deprecated) for one in command.params),
    ]:
        if deprecation and not str(deprecation).startswith("Use "):
            yield name
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                if (inner := command.get_command(context, name)) is not None:
                    yield from without_replacement(inner, f"{path} {name}".lstrip())


if __name__ == "__main__":
    lines = surface()
    RECORD.write_text("\n".join([*lines, ""]), encoding="utf-8")
    print(f"{len(lines)} promises in {RECORD.relative_to(ROOT)}")
