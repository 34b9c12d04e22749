"""From the text of an expression to a checked tree.

The CEL library (the reference implementation in C++) parses and checks types; it is imported when the first selector is
met. It is told here which functions and variables there are. It does not evaluate: it has no way to carry values of
our own types such as Quantity, and none to read an unknown domain as an empty map, so `evaluation` does that.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from kubesched.errors import SchedulerError
from kubesched.kube.cel.declarations import configuration
from kubesched.kube.cel.literals import check_literals
from kubesched.kube.cel.syntax import Call, Ident, Node, Select, decode, walk
from kubesched.kube.cel.values import CompileError

FIELDS = ("driver", "attributes", "capacity", "allowMultipleAllocations")
"""What a device has."""

NO_CEL = "device selectors are CEL, and no CEL library is installed: pip install 'kubesched[dra]'"

LONGEST = 10 * 1024
"""The API server lets no longer ones in."""

_EXISTS_ONE_OF_TWO = re.compile(
    r"""([bBrR]{0,2}(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")|//[^\n]*)"""
    r"|(\.\s*)exists_one(\s*\(\s*[A-Za-z_]\w*\s*,\s*[A-Za-z_]\w*\s*,)",
    re.DOTALL,
)
"""A macro with two variables, which the library only knows as `existsOne`; first texts and comments."""


def check(expression: str, want_bool: bool = True, newer: bool = True, any_attributes: bool = False) -> Node:
    """Return the tree of an expression over a device whose value is a bool, or may be one, unless any value will do.

    `newer`: what is refused is what CEL refuses since 1.37. `any_attributes`: attributes are of type any and not dyn, as they
    were before 1.37 unless they may be lists.
    """
    if not expression.strip():
        raise CompileError("compilation failed: the expression is empty")
    if len(expression.encode(errors="replace")) > LONGEST:
        raise CompileError(f"compilation failed: the expression is longer than {LONGEST} bytes")
    try:
        expression = _EXISTS_ONE_OF_TWO.sub(lambda found: found[1] or f"{found[2]}existsOne{found[3]}", expression)
        parsed = decode(_environment(False).compile(expression, disable_check=True).serialize())
        _check_fields(parsed)
        loose = any(isinstance(node, Select) and node.test_only and node.operand == Ident("device") for node in walk(parsed))
        compiled = _environment(not loose).compile(expression)
    except RuntimeError as error:
        complaints = [line for line in str(error).splitlines() if "ERROR:" in line]
        raise CompileError(f"compilation failed: {_plain(complaints[0] if complaints else str(error))}") from None
    name = str(compiled.return_type().name()).lower()
    if want_bool and name not in ("bool", "dyn"):
        raise CompileError(f"must evaluate to bool or the unknown type, not {name}")
    tree = decode(compiled.serialize())
    if want_bool and any_attributes and isinstance(tree, Call) and tree.function == "dyn":
        raise CompileError("must evaluate to bool or the unknown type, not dyn")  # the unknown type was any, before 1.37
    check_literals(tree, newer, any_attributes, not loose)
    return tree


def _plain(text: str) -> str:
    """Return the first line of a complaint of the library without its own marks."""
    line = next((line for line in text.splitlines() if line.strip()), "unknown error")
    return re.sub(r"^[A-Z_]+: (?=ERROR)|\s*\[[A-Z_]+\]$", "", line.strip())


def _check_fields(tree: Node) -> None:
    bound = {name for node in walk(tree) for name in (getattr(node, "variable", ""), getattr(node, "accumulator", ""))}
    for node in walk(tree):
        if isinstance(node, Select) and node.operand == Ident("device") and node.field not in FIELDS and "device" not in bound:
            raise CompileError(f"compilation failed: undefined field '{node.field}'")


@lru_cache(maxsize=2)
def _environment(typed: bool) -> Any:
    try:
        from cel_expr_python import cel
        from cel_expr_python.ext import ext_bindings, ext_optional
    except ImportError as error:  # no CelError: it says nothing about the expression, and must not pass for an answer
        raise SchedulerError(NO_CEL) from error

    kind = cel.Type
    amount = kind.AbstractType("kubernetes.Quantity")
    variables = {"device": kind.DYN}
    if typed:
        variables |= {
            "device.driver": kind.STRING,
            "device.allowMultipleAllocations": kind.BOOL,
            "device.attributes": kind.Map(kind.STRING, kind.Map(kind.STRING, kind.DYN)),
            "device.capacity": kind.Map(kind.STRING, kind.Map(kind.STRING, amount)),
        }
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(configuration()),
        variables=variables,
        extensions=[ext_bindings.ExtBindings(), ext_optional.ExtOptional()],
        functions=[],
    )
