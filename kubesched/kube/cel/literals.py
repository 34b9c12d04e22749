"""Literals that are wrong whatever a device is: refused when an expression is compiled, as kube-scheduler refuses them.

In: a checked tree. Out: nothing, or a `CompileError`: patterns that are none, lists and maps of mixed types, templates of
`format` that do not fit their values.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.kube.cel import formatting
from kubesched.kube.cel.syntax import Call, Const, MakeList, MakeMap, Node, walk
from kubesched.kube.cel.times import Duration, Timestamp
from kubesched.kube.cel.values import CompileError, EvaluationError, UInt
from kubesched.kube.values import RegexError, compile_regex


def check_literals(tree: Node, newer: bool = True, any_attributes: bool = False, typed: bool = True) -> None:
    """Raise for the first literal that is wrong; `newer`: to CEL as it is since 1.37; `any_attributes`: attributes are of type
    any and not dyn; `typed`: a device has types."""
    formats = (node for node in walk(tree) if isinstance(node, Call) and node.function == "format" and node.target is not None)
    exempt = {id(node) for call in formats for node in walk(call)}
    for node in walk(tree):
        match node:
            case Call(target, "matches" | "find" | "findAll", (*_, Const(str() as pattern))) | Call(
                target, "findAll", (Const(str() as pattern), _)
            ):
                _check_pattern(node.function, pattern, target is not None)
            case Call(None, "matches", (Const(str() as text), _)) if not _is_pattern(text):
                # The reference looks at the first argument, which is the pattern only of a member.
                raise CompileError("compilation failed: invalid matches argument")
            case Call(None, "duration", _, ("int64_to_duration",)) if newer:
                raise CompileError("compilation failed: found no matching overload for 'duration' applied to '(int)'")
            case Call(Const(str() as template), "format", (MakeList() as values,)):
                _check_format(template, values, any_attributes)
            case MakeList() if id(node) not in exempt:
                _check_types([_known(kind, i in node.optional, typed) for i, kind in enumerate(node.types)])
            case MakeMap(entries) if id(node) not in exempt:
                _check_types([_known(key, False, typed) for key, _ in node.types])
                pairs = zip(entries, node.types, strict=False)
                _check_types([_known(value, entry.is_optional, typed) for entry, (_, value) in pairs])


class _Any:
    cel_name = "any"


_ANY = _Any()
_SAMPLES = {
    "bool": True,
    "int": 0,
    "uint": UInt(0),
    "double": 0.0,
    "bytes": b"",
    "null": None,
    "list": [],
    "map": {},
    "timestamp": Timestamp(0),
    "duration": Duration(0),
}
"""A value of each type that `format` can be told to be wrong without knowing which; a text may still be "NaN"."""


_OPAQUE = frozenset(
    (
        "kubernetes.Quantity",
        "kubernetes.Semver",
        "kubernetes.URL",
        "kubernetes.NamedFormat",
        "net.IP",
        "net.CIDR",
        "optional_type",
    )
)
"""Types that no clause of `format` takes."""


def _is_pattern(text: str) -> bool:
    try:
        compile_regex(text)
    except RegexError:
        return False
    return True


def _opaque_inside(node: Node) -> bool:
    """Return whether a literal list or map holds something that `%s` does not take."""
    match node:
        case MakeList(elements):
            kinds, parts = list(node.types), list(elements)
        case MakeMap(entries):
            kinds = [kind for pair in node.types for kind in pair]
            parts = [part for entry in entries for part in (entry.key, entry.value)]
        case _:
            return False
    return any(kind.partition("(")[0] in _OPAQUE for kind in kinds) or any(map(_opaque_inside, parts))


def _check_pattern(function: str, pattern: str, is_member: bool) -> None:
    try:
        compile_regex(pattern)
    except RegexError as error:
        if function == "matches" and is_member:
            raise CompileError("compilation failed: invalid matches argument") from None
        raise CompileError(f"program instantiation failed: {error}") from None


def _known(kind: str, is_optional: bool, typed: bool) -> str:
    """Return the type of an element, or of what it holds if it is optional; "" where the reference may know better."""
    if is_optional:
        kind = kind.removeprefix("optional_type(")[:-1] if kind.startswith("optional_type(") else ""
    return kind if typed or "dyn" not in kind else ""


def _check_types(types: Sequence[str]) -> None:
    known = [one for one in types if one]
    for other in known[1:]:
        if other != known[0]:
            raise CompileError(f"compilation failed: expected type '{known[0]}' but found '{other}'")


def _check_format(template: str, values: MakeList, any_attributes: bool) -> None:
    used, types = 0, values.types or ("",) * len(values.elements)
    try:
        for _, letter, _ in formatting.clauses(template):
            if letter == "%":
                continue
            if used >= len(values.elements):
                raise EvaluationError(f"index {used} out of range")
            given, kind = values.elements[used], types[used]
            if isinstance(given, Const):
                wrong = formatting.complaint(letter, given.value)
            elif letter == "s" and _opaque_inside(given):
                wrong = formatting.complaint(letter, _ANY)
            elif (shape := kind.partition("(")[0]) in _SAMPLES:
                wrong = formatting.complaint(letter, _SAMPLES[shape])
            elif shape in _OPAQUE:
                wrong = formatting.complaint(letter, _ANY)
            else:
                # Attributes were of type any before 1.37, which `format` does not take; they are dyn now.
                is_any = kind == "dyn" and any_attributes and not (isinstance(given, Call) and given.function == "dyn")
                wrong = formatting.complaint(letter, _ANY) if is_any else None
            if wrong is not None:
                raise EvaluationError(f"error during formatting: {wrong}")
            used += 1
    except EvaluationError as error:
        raise CompileError(f"compilation failed: {error}") from None
    if len(values.elements) > used:
        text = f"too many arguments supplied to string.format (expected {used}, got {len(values.elements)})"
        raise CompileError(f"compilation failed: {text}")
