"""Expressions put to work: a tree becomes nested Python functions, once, and runs on as many devices as there are.

`&&` and `||` look at both sides before they let an error through, as CEL does; a comprehension carries an error along
until its end, because a later element may still decide. Every step costs, and an expression that costs too much fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from kubesched.plugins._cel import collections, formats, networks, quantities, standard, texts, versions
from kubesched.plugins._cel.syntax import Call, Comprehension, Const, Ident, MakeList, MakeMap, Node, Select
from kubesched.plugins._cel.values import EvaluationError, Optional, no_overload, type_name

COST_LIMIT = 1_000_000

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **standard.GLOBALS,
    **collections.GLOBALS,
    **texts.GLOBALS,
    **quantities.GLOBALS,
    **versions.GLOBALS,
    **networks.GLOBALS,
    **formats.GLOBALS,
}
"""Functions that stand alone, by name; namespaced ones with their namespace."""

MEMBERS: tuple[tuple[type | tuple[type, ...], Mapping[str, Callable[..., Any]]], ...] = (
    (str, texts.MEMBERS),
    (list, collections.LIST_MEMBERS),
    (quantities.Quantity, quantities.MEMBERS),
    (versions.Semver, versions.MEMBERS),
    (Optional, collections.OPTIONAL_MEMBERS),
    ((datetime, timedelta), standard.TIME_MEMBERS),
    (networks.IP, networks.IP_MEMBERS),
    (networks.CIDR, networks.CIDR_MEMBERS),
    (networks.URL, networks.URL_MEMBERS),
    (formats.Format, formats.MEMBERS),
)
"""Functions that are asked of a value, by the value's type."""

MEMBER_NAMES = frozenset(name for _, members in MEMBERS for name in members) | {"size", "includes"}


class Scope(dict[str, Any]):
    """The variables of one run, and what it has cost so far."""

    spent = 0

    def spend(self, cost: int) -> None:
        """Count steps; fail when there were too many."""
        self.spent += cost
        if self.spent > COST_LIMIT:
            raise EvaluationError("operation cancelled: actual cost limit exceeded")


class _Broken:
    """An error that a comprehension carries along."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


Run = Callable[[Scope], Any]


def build(node: Node) -> Run:
    """Return the function that computes a tree's value."""
    match node:
        case Const(value):
            return lambda scope: value
        case Ident(name):
            return _ident(name.removeprefix("."))
        case Select():
            return _select(node)
        case Call():
            return _call(node)
        case MakeList():
            return _list(node)
        case MakeMap():
            return _map(node)
        case Comprehension():
            return _comprehension(node)


def _ident(name: str) -> Run:
    def run(scope: Scope) -> Any:
        scope.spend(1)
        try:
            value = scope[name]
        except KeyError:
            if name in standard.TYPES:
                return standard.TYPES[name]
            raise EvaluationError(f"no such attribute(s): {name}") from None
        if isinstance(value, _Broken):
            raise value.error
        return value

    return run


def _select(node: Select) -> Run:
    operand, field = build(node.operand), node.field

    def test(scope: Scope) -> bool:
        scope.spend(1)
        value = operand(scope)
        if isinstance(value, Optional):
            value = value.value if value.is_there else {}
        if not isinstance(value, dict):
            raise EvaluationError(f"type '{type_name(value)}' does not support field selection")
        return standard.has_entry(value, field)

    def run(scope: Scope) -> Any:
        scope.spend(1)
        value = operand(scope)
        if isinstance(value, Optional):
            return standard.find(value, field)
        if not isinstance(value, dict):
            raise EvaluationError(f"type '{type_name(value)}' does not support field selection")
        try:
            return value[field]
        except KeyError:
            raise EvaluationError(f"no such key: {field}") from None

    return test if node.test_only else run


def _call(node: Call) -> Run:
    name = node.function
    if name == "_&&_":
        return _logic(build(node.args[0]), build(node.args[1]), name, deciding=False)
    if name == "_||_":
        return _logic(build(node.args[0]), build(node.args[1]), name, deciding=True)
    if name == "_?_:_":
        return _conditional(*map(build, node.args))
    if name in ("@not_strictly_false", "__not_strictly_false__"):
        return _not_strictly_false(build(node.args[0]))
    if name == "cel.@mapInsert":
        return _map_insert(tuple(map(build, node.args)))
    if node.target is not None:
        path = _path(node.target)
        if path is not None and f"{path}.{name}" in FUNCTIONS:  # an unchecked tree has not been told so yet
            return _function(f"{path}.{name}", tuple(map(build, node.args)))
        return _member(name, build(node.target), tuple(map(build, node.args)))
    return _function(name, tuple(map(build, node.args)))


def _path(node: Node) -> str | None:
    return node.name if isinstance(node, Ident) else None


def _function(name: str, args: tuple[Run, ...]) -> Run:
    function = FUNCTIONS.get(name)
    if function is None:
        return _member(name, args[0], args[1:]) if args else _missing(name)
    if len(args) == 2:
        first, second = args

        def run_two(scope: Scope) -> Any:
            scope.spend(1)
            return function(first(scope), second(scope))

        return run_two

    def run(scope: Scope) -> Any:
        scope.spend(1)
        return _applied(name, function, [arg(scope) for arg in args])

    return run


def _missing(name: str) -> Run:
    def run(scope: Scope) -> Any:
        raise EvaluationError(f"unknown function: {name}")

    return run


def _member(name: str, target: Run, args: tuple[Run, ...]) -> Run:
    def run(scope: Scope) -> Any:
        value = target(scope)
        given = [arg(scope) for arg in args]
        scope.spend(1 + (len(value) // 10 if isinstance(value, (str, bytes, list)) else 0))
        for kind, members in MEMBERS:
            if isinstance(value, kind) and name in members:
                return _applied(name, members[name], [value, *given])
        if name == "size":
            return standard.GLOBALS["size"](value)
        if name == "includes" and len(given) == 1:
            return collections.includes(value, given[0])
        raise no_overload(name, value, *given)

    return run


def _applied(name: str, function: Callable[..., Any], arguments: list[Any]) -> Any:
    try:
        return function(*arguments)
    except (TypeError, AttributeError):  # the wrong number or the wrong types of arguments, found too late to check
        raise no_overload(name, *arguments) from None


def _logic(left: Run, right: Run, name: str, deciding: bool) -> Run:
    def run(scope: Scope) -> bool:
        scope.spend(1)
        error: EvaluationError | None = None
        for side in (left, right):
            try:
                value = side(scope)
            except EvaluationError as failure:
                error = error or failure
                continue
            if not isinstance(value, bool):
                error = error or no_overload(name, value)
            elif value is deciding:
                return deciding
        if error is not None:
            raise error
        return not deciding

    return run


def _conditional(question: Run, then: Run, otherwise: Run) -> Run:
    def run(scope: Scope) -> Any:
        scope.spend(1)
        answer = question(scope)
        if not isinstance(answer, bool):
            raise no_overload("_?_:_", answer)
        return then(scope) if answer else otherwise(scope)

    return run


def _not_strictly_false(operand: Run) -> Run:
    def run(scope: Scope) -> bool:
        try:
            value = operand(scope)
        except EvaluationError:
            return True
        return value is not False

    return run


def _map_insert(args: tuple[Run, ...]) -> Run:
    def run(scope: Scope) -> dict[Any, Any]:
        scope.spend(1)
        values = [arg(scope) for arg in args]
        added = values[1] if len(values) == 2 else {values[1]: values[2]}
        for key in added:
            if key in values[0]:
                raise EvaluationError(f"insert failed: key {texts.as_text(key)} already exists")
        return {**values[0], **added}

    return run


def _list(node: MakeList) -> Run:
    elements = tuple(map(build, node.elements))

    def run(scope: Scope) -> list[Any]:
        scope.spend(1 + len(elements))
        values = []
        for i, element in enumerate(elements):
            value = element(scope)
            if i in node.optional:
                if value.is_there:
                    values.append(value.value)
            else:
                values.append(value)
        return values

    return run


def _map(node: MakeMap) -> Run:
    entries = tuple((build(entry.key), build(entry.value), entry.is_optional) for entry in node.entries)

    def run(scope: Scope) -> dict[Any, Any]:
        scope.spend(1 + len(entries))
        made: dict[Any, Any] = {}
        for key_of, value_of, is_optional in entries:
            key, value = key_of(scope), value_of(scope)
            if isinstance(key, (float, list, dict)) or key is None:
                raise EvaluationError(f"unsupported key type: {type_name(key)}")
            if key in made:
                raise EvaluationError(f"Failed with repeated key: {texts.as_text(key)}")
            if not is_optional:
                made[key] = value
            elif value.is_there:
                made[key] = value.value
        return made

    return run


def _comprehension(node: Comprehension) -> Run:
    over, start, condition = build(node.over), build(node.start), build(node.condition)
    step, result = build(node.step), build(node.result)
    names = [name for name in (node.variable, node.second_variable, node.accumulator) if name]

    def run(scope: Scope) -> Any:
        elements = _pairs(over(scope), bool(node.second_variable))
        before = {name: scope[name] for name in names if name in scope}
        try:
            scope[node.accumulator] = _attempt(start, scope)
            for first, second in elements:
                scope.spend(1)
                scope[node.variable] = first
                if node.second_variable:
                    scope[node.second_variable] = second
                if not condition(scope):
                    break
                scope[node.accumulator] = _attempt(step, scope)
            return result(scope)
        finally:
            for name in names:
                scope.pop(name, None)
            scope.update(before)

    return run


def _pairs(value: Any, both: bool) -> list[tuple[Any, Any]]:
    if isinstance(value, list):
        return list(enumerate(value)) if both else [(element, None) for element in value]
    if isinstance(value, dict):
        return list(value.items())
    raise EvaluationError(f"got '{type_name(value)}', expected iterable type")


def _attempt(part: Run, scope: Scope) -> Any:
    try:
        return part(scope)
    except EvaluationError as error:
        if scope.spent > COST_LIMIT:
            raise
        return _Broken(error)
