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
from kubesched.kube.cel import formats
from kubesched.kube.cel.evaluation import FUNCTIONS, MEMBER_NAMES
from kubesched.kube.cel.literals import check_literals
from kubesched.kube.cel.syntax import Call, Ident, Node, Select, decode, walk
from kubesched.kube.cel.values import CompileError

FIELDS = ("driver", "attributes", "capacity", "allowMultipleAllocations")
"""What a device has."""

NO_CEL = "device selectors are CEL, and no CEL library is installed: pip install 'kubesched[dra]'"

LONGEST = 10 * 1024
"""The API server lets no longer ones in."""

_LIBRARIES = "name: device\nextensions:\n  - name: sets\n  - name: lists\n  - name: two-var-comprehensions\n"
_NUMBERS = r"\((?:int|uint|double), (?:int|uint|double)\)"
_UNTYPED = re.compile(
    rf"found no matching overload for '(?:_(?:<|<=|>|>=)_' applied to '{_NUMBERS}'"
    r"|string' applied to '\(net\.(?:IP|CIDR)\)'|(?:lastI|i)ndexOf' applied to '\((?:list\(.*\)|dyn), .*\)')"
)
"""Overloads that Kubernetes has and the library does not: with these alone the check is left to the evaluation."""


def check(expression: str, want_bool: bool = True, newer: bool = True) -> Node:
    """Return the tree of an expression over a device whose value is a bool, or may be one, unless any value will do.

    `newer`: what is refused is what CEL refuses since 1.37.
    """
    if not expression.strip():
        raise CompileError("compilation failed: the expression is empty")
    if len(expression.encode(errors="replace")) > LONGEST:
        raise CompileError(f"compilation failed: the expression is longer than {LONGEST} bytes")
    try:
        parsed = decode(_environment(False).compile(expression, disable_check=True).serialize())
        _check_fields(parsed)
        loose = any(isinstance(node, Select) and node.test_only and node.operand == Ident("device") for node in walk(parsed))
        compiled = _environment(not loose).compile(expression)
    except RuntimeError as error:
        complaints = [line for line in str(error).splitlines() if "ERROR:" in line]
        serious = [line for line in complaints if not _UNTYPED.search(line)]
        if complaints and not serious:
            _check_functions(parsed)
            check_literals(parsed, newer)
            return parsed
        raise CompileError(f"compilation failed: {_plain(serious[0] if serious else str(error))}") from None
    name = str(compiled.return_type().name()).lower()
    if want_bool and name not in ("bool", "dyn"):
        raise CompileError(f"must evaluate to bool or the unknown type, not {name}")
    tree = decode(compiled.serialize())
    if want_bool and not newer and isinstance(tree, Call) and tree.function == "dyn":
        raise CompileError("must evaluate to bool or the unknown type, not dyn")  # the unknown type was any, before 1.37
    check_literals(tree, newer, not loose)
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


def _check_functions(tree: Node) -> None:
    for node in walk(tree):
        if isinstance(node, Call) and node.target is not None:
            path = node.target.name if isinstance(node.target, Ident) else ""
            if node.function not in MEMBER_NAMES and f"{path}.{node.function}" not in FUNCTIONS:
                raise CompileError(f"compilation failed: undeclared reference to '{node.function}'")


@lru_cache(maxsize=2)
def _environment(typed: bool) -> Any:
    try:
        from cel_expr_python import cel
        from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings
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
    # Kubernetes has version 2 of the functions of texts: `reverse` came with the third, here it is of lists alone.
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(_LIBRARIES),
        variables=variables,
        extensions=[ext_bindings.ExtBindings(), ext_optional.ExtOptional(), ext_strings.ExtStrings(2)],
        functions=_declarations(cel),
    )


def _declarations(cel: Any) -> list[Any]:
    """Return what the library must know of the functions that it does not have itself."""
    kind = cel.Type
    text, flag, number, anything = kind.STRING, kind.BOOL, kind.INT, kind.DYN
    amount, version = kind.AbstractType("kubernetes.Quantity"), kind.AbstractType("kubernetes.Semver")
    ip, cidr, url = kind.AbstractType("net.IP"), kind.AbstractType("net.CIDR"), kind.AbstractType("kubernetes.URL")
    named = kind.AbstractType("kubernetes.NamedFormat")
    values, names = kind.List(anything), kind.List(text)
    summed_kinds = (number, kind.UINT, kind.DOUBLE, kind.DURATION)
    compared_kinds = (*summed_kinds[:3], flag, kind.DURATION, kind.TIMESTAMP, text, kind.BYTES)
    compared = [(flag, (amount, amount), True), (flag, (version, version), True)]
    globals_: dict[str, list[tuple[Any, tuple[Any, ...], bool]]] = {
        "quantity": [(amount, (text,), False)],
        "isQuantity": [(flag, (text,), False)],
        "semver": [(version, (text,), False), (version, (text, flag), False)],
        "isSemver": [(flag, (text,), False), (flag, (text, flag), False)],
        "isGreaterThan": compared,
        "isLessThan": compared,
        "compareTo": [(number, (amount, amount), True), (number, (version, version), True)],
        "add": [(amount, (amount, amount), True), (amount, (amount, number), True)],
        "sub": [(amount, (amount, amount), True), (amount, (amount, number), True)],
        "sign": [(number, (amount,), False)],
        "isInteger": [(flag, (amount,), True)],
        "asInteger": [(number, (amount,), True)],
        "asApproximateFloat": [(kind.DOUBLE, (amount,), True)],
        "major": [(number, (version,), True)],
        "minor": [(number, (version,), True)],
        "patch": [(number, (version,), True)],
        "isSorted": [(flag, (kind.List(each),), True) for each in compared_kinds],
        "sum": [(each, (kind.List(each),), True) for each in summed_kinds],
        "min": [(each, (kind.List(each),), True) for each in compared_kinds],
        "max": [(each, (kind.List(each),), True) for each in compared_kinds],
        "includes": [(flag, (anything, anything), True)],
        "optional.unwrap": [(values, (values,), False)],
        "unwrapOpt": [(values, (values,), True)],
        "find": [(text, (text, text), True)],
        "findAll": [(names, (text, text), True), (names, (text, text, number), True)],
        "ip": [(ip, (text,), False), (ip, (cidr,), True)],
        "isIP": [(flag, (text,), False)],
        "ip.isCanonical": [(flag, (text,), False)],
        "cidr": [(cidr, (text,), False)],
        "isCIDR": [(flag, (text,), False)],
        "containsIP": [(flag, (cidr, ip), True), (flag, (cidr, text), True)],
        "containsCIDR": [(flag, (cidr, cidr), True), (flag, (cidr, text), True)],
        "masked": [(cidr, (cidr,), True)],
        "prefixLength": [(number, (cidr,), True)],
        "family": [(number, (ip,), True)],
        "url": [(url, (text,), False)],
        "isURL": [(flag, (text,), False)],
        "getQuery": [(kind.Map(text, names), (url,), True)],
        "format.named": [(anything, (text,), False)],
        "validate": [(anything, (named, text), True)],
    }
    for name in ("isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast"):
        globals_[name] = [(flag, (ip,), True)]
    for name in ("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath"):
        globals_[name] = [(text, (url,), True)]
    for name in formats.NAMES:
        globals_[f"format.{name}"] = [(named, (), False)]
    return [
        cel.FunctionDecl(
            name,
            [
                cel.Overload(f"{name}_{i}", return_type=returned, parameters=list(taken), is_member=is_member)
                for i, (returned, taken, is_member) in enumerate(overloads)
            ],
        )
        for name, overloads in globals_.items()
    ]
