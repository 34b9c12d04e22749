"""Expressions put to work: a tree becomes nested Python functions, once, and runs on as many devices as there are.

`&&` and `||` look at both sides before they let an error through, as CEL does; a comprehension carries an error along
until its end, because a later element may still decide. Every step costs what it costs in kube-scheduler (`costs`), and an
expression that costs too much is cut off: at the latest after one round of a loop, or before a call whose cost grows with
its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from kubesched.kube.cel import collections, formats, networks, quantities, standard, texts, times, urls, versions
from kubesched.kube.cel.costs import (
    COST_LIMIT,
    COSTS_OF_FAILURE,
    LIST,
    MAP,
    NEWER_COSTS,
    OLDER_COSTS,
    PLAIN,
    UNRESOLVED_COSTS,
    WORK,
    WORK_LIMIT,
    Count,
    call_cost,
    tenth,
)
from kubesched.kube.cel.formatting import as_text
from kubesched.kube.cel.syntax import Call, Comprehension, Const, Ident, MakeList, MakeMap, Node, Select
from kubesched.kube.cel.values import CelError, CompileError, EvaluationError, Optional, no_overload, type_name

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **standard.GLOBALS,
    **collections.GLOBALS,
    **texts.GLOBALS,
    **quantities.GLOBALS,
    **versions.GLOBALS,
    **networks.GLOBALS,
    **urls.GLOBALS,
    **formats.GLOBALS,
}
"""Functions that stand alone, by name; namespaced ones with their namespace."""

MEMBERS: tuple[tuple[type | tuple[type, ...], Mapping[str, Callable[..., Any]]], ...] = (
    (str, texts.MEMBERS),
    (list, collections.LIST_MEMBERS),
    (quantities.Quantity, quantities.MEMBERS),
    (versions.Semver, versions.MEMBERS),
    (Optional, collections.OPTIONAL_MEMBERS),
    ((times.Timestamp, times.Duration), times.MEMBERS),
    (networks.IP, networks.IP_MEMBERS),
    (networks.CIDR, networks.CIDR_MEMBERS),
    (urls.URL, urls.MEMBERS),
    (formats.Format, formats.MEMBERS),
)
"""Functions that are asked of a value, by the value's type."""

NEWER_FUNCTIONS: Mapping[str, Callable[..., Any]] = {**FUNCTIONS, **collections.NEWER_GLOBALS}
NEWER_MEMBERS: tuple[tuple[type | tuple[type, ...], Mapping[str, Callable[..., Any]]], ...] = (
    (str, texts.NEWER_MEMBERS),
    *MEMBERS,
)
"""The same as CEL has them since 1.37; who comes first answers."""

_CHANGED = frozenset(
    {*collections.NEWER_GLOBALS, *texts.NEWER_MEMBERS, *NEWER_COSTS, *OLDER_COSTS},
)
"""Functions whose answer or cost is not the same in both."""

SUMMED_KINDS = ("int", "uint", "double", "google.protobuf.Duration")
COMPARED_KINDS = (*SUMMED_KINDS[:3], "bool", SUMMED_KINDS[3], "google.protobuf.Timestamp", "string", "bytes")
SUMMARIES = {"sum": SUMMED_KINDS, **dict.fromkeys(("min", "max", "isSorted"), COMPARED_KINDS)}
"""Functions with an overload for each kind of element, in the order of the overloads."""


class CutOff(CelError):
    """The expression costs too much, or breaks the reference; nothing in it can catch this."""

    def __init__(self, text: str = "operation cancelled: actual cost limit exceeded") -> None:
        super().__init__(text)


class Scope(dict[str, Any]):
    """The variables of one run, and what it has cost so far."""

    __slots__ = ("newer", "spent", "worked")

    def __init__(self, variables: Mapping[str, Any], newer: bool = True) -> None:
        super().__init__(variables)
        self.newer = newer
        self.spent = 0
        self.worked = 0

    def charge(self, cost: int, work: int) -> None:
        """Count a call whose cost depends on its arguments."""
        self.spent += cost
        self.worked += work
        if self.spent > COST_LIMIT or self.worked > WORK_LIMIT:
            raise CutOff


class _Broken:
    """An error that a comprehension carries along."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


class _Unread:
    """A variable of `cel.bind`, whose cost counts when it is read for the first time."""

    __slots__ = ("cost", "value")

    def __init__(self, value: Any, cost: int) -> None:
        self.value = value
        self.cost = cost


Run = Callable[[Scope], Any]
Charge = Callable[[Scope, Any], None]

_EMPTY_LIST, _EMPTY_MAP = MakeList((), frozenset()), MakeMap(())
_CONVERSIONS = frozenset({"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"})


def build(node: Node) -> Run:
    """Return the function that computes a tree's value."""
    return _build(node, 1)


def _build(node: Node, entry: int) -> Run:
    """Build a node. Reading a variable and what is selected from it costs `entry` once, and 1 for each selection."""
    match node:
        case Const(value):
            return lambda scope: value
        case Ident(name):
            return _ident(name.removeprefix("."), entry)
        case Select():
            return _select(node, entry)
        case Call():
            return _constant(node) or _call(node, entry)
        case MakeList():
            return _constant(node) or _list(node)
        case MakeMap():
            return _constant(node) or _map(node)
        case Comprehension():
            return _comprehension(node)


def _is_constant(node: Node) -> bool:
    match node:
        case Const():
            return True
        case Ident(name):
            return name in standard.TYPES
        case MakeList(elements, optional):
            return not optional and all(map(_is_constant, elements))
        case MakeMap(entries):
            return all(not e.is_optional and _is_constant(e.key) and _is_constant(e.value) for e in entries)
        case Call(None, function, (arg,)):
            return function in _CONVERSIONS and _is_constant(arg)
    return False


def _constant(node: Call | MakeList | MakeMap) -> Run | None:
    """Return the value of a node that is the same in every run, which costs nothing; None if the node is another."""
    if not _is_constant(node):
        return None
    make = _call(node, 0) if isinstance(node, Call) else _list(node) if isinstance(node, MakeList) else _map(node)
    try:
        value = make(Scope({}))
    except (EvaluationError, CutOff) as error:
        if isinstance(node, Call):
            raise CompileError(f"program instantiation failed: {error}") from None
        return None
    return lambda scope: value


def _is_attribute(node: Node) -> bool:
    if isinstance(node, Call):
        return node.function in ("_[_]", "_[?_]", "_?._", "_?_:_") and not _is_constant(node)
    return isinstance(node, (Ident, Select))


def _operand(node: Node, entry: int) -> tuple[Run, int]:
    """Build what something is selected from; return it, and the cost of the selection."""
    if _is_attribute(node):
        return _build(node, entry), 1
    made = _build(node, 1)

    def run(scope: Scope) -> Any:
        try:
            value = made(scope)
        except EvaluationError:
            scope.spent += entry
            raise
        scope.spent += entry
        return value

    return run if entry else made, 1


def _ident(name: str, entry: int) -> Run:
    cost = entry + name.count(".") if name not in standard.TYPES else 0

    def run(scope: Scope) -> Any:
        scope.spent += cost
        try:
            value = scope[name]
        except KeyError:
            if name in standard.TYPES:
                return standard.TYPES[name]
            raise EvaluationError(f"no such attribute(s): {name}") from None
        if value.__class__ is _Unread:
            scope.spent += value.cost
            value = scope[name] = value.value
        if value.__class__ is _Broken:
            raise value.error
        return value

    return run


def _select(node: Select, entry: int) -> Run:
    # Asking whether a field is there is free, but the way to it is not.
    operand, cost = _operand(node.operand, 0 if node.test_only else entry)
    field = node.field

    def test(scope: Scope) -> bool:
        value = operand(scope)
        if isinstance(value, Optional):
            if isinstance(value.value, list):
                raise EvaluationError("unsupported index type 'string' in list")
            return isinstance(value.value, dict) and standard.has_entry(value.value, field)
        scope.spent += cost
        if not isinstance(value, dict):
            raise EvaluationError(f"type '{type_name(value)}' does not support field selection")
        return standard.has_entry(value, field)

    def run(scope: Scope) -> Any:
        value = operand(scope)
        if value.__class__ is Optional:
            return _found(standard.find(value, field), scope, cost)
        scope.spent += cost
        if not isinstance(value, dict):
            raise EvaluationError(f"type '{type_name(value)}' does not support field selection")
        try:
            return value[field]
        except KeyError:
            raise EvaluationError(f"no such key: {field}") from None

    return test if node.test_only else run


def _found(value: Optional, scope: Scope, cost: int) -> Optional:
    """Return what was looked for; what is not there costs nothing."""
    scope.spent += cost if value.is_there else cost - 1
    return value


def _index(node: Call, entry: int, optional: bool) -> Run:
    operand, cost = _operand(node.args[0], entry)
    key = _build(node.args[1], 0 if _is_attribute(node.args[1]) else 1)

    def run(scope: Scope) -> Any:
        value = operand(scope)
        scope.spent += cost
        return standard.index(value, key(scope))

    def find(scope: Scope) -> Any:
        return _found(standard.find(operand(scope), key(scope)), scope, cost)

    return find if optional else run


def _call(node: Call, entry: int) -> Run:
    name = node.function
    if name == "_&&_":
        return _logic(build(node.args[0]), build(node.args[1]), name, deciding=False)
    if name == "_||_":
        return _logic(build(node.args[0]), build(node.args[1]), name, deciding=True)
    if name == "_?_:_":
        return _conditional(build(node.args[0]), *(_build(arg, 0 if _is_attribute(arg) else 1) for arg in node.args[1:]))
    if name in ("_[_]", "_[?_]", "_?._"):
        return _index(node, entry, name != "_[_]")
    if name in ("@not_strictly_false", "__not_strictly_false__"):
        return _not_strictly_false(build(node.args[0]))
    if name == "cel.@mapInsert":
        return _map_insert([build(arg) for arg in node.args])
    if name == "@in" and node.overloads == ("in_list",) and _is_constant(node.args[1]):
        known = _membership(build(node.args[0]), build(node.args[1])(Scope({})))
        if known is not None:
            return known
    stops = _stops(node)
    if node.target is not None:
        if name in ("or", "orValue") and len(node.args) == 1:
            return _otherwise(build(node.target), build(node.args[0]), name == "orValue")
        namespaced = f"{node.target.name}.{name}" if isinstance(node.target, Ident) else ""
        if namespaced in FUNCTIONS:  # an unchecked tree has not been told so yet
            return _function(namespaced, [build(arg) for arg in node.args], node.overloads, stops)
        return _member(name, [build(arg) for arg in node.operands], node.overloads, stops)
    return _function(name, [build(arg) for arg in node.args], node.overloads, stops)


def _stops(node: Call) -> bool:
    """Return whether no argument of a call is evaluated after one that failed: where the reference decides between overloads
    only when it runs, and where it has compiled a constant pattern."""
    if node.function in ("matches", "find", "findAll"):
        return isinstance(node.args[-1], Const)
    return node.overloads is not None and len(node.overloads) > 1 and node.function[0] not in "_@" and node.function != "size"


def _membership(operand: Run, values: list[Any]) -> Run | None:
    """Return `in` for a list of plain constants, which costs nothing; None for other lists."""
    if not all(isinstance(value, (bool, int, float, str)) for value in values):
        return None
    if not values:
        return lambda scope: False
    known = frozenset((isinstance(value, bool), value) for value in values)

    def run(scope: Scope) -> bool:
        value = operand(scope)
        return isinstance(value, (int, float, str)) and (isinstance(value, bool), value) in known

    return run


def _otherwise(operand: Run, other: Run, is_value: bool) -> Run:
    def run(scope: Scope) -> Any:
        value = operand(scope)
        if not isinstance(value, Optional):
            if scope.newer:
                raise EvaluationError("no such overload")
            return value
        if value.is_there:
            return value.value if is_value else value
        return other(scope)

    return run


def _either(name: str, make: Callable[[bool], Run]) -> Run:
    """Return a call as the release asked for makes it; `make` is told whether it is a newer one."""
    if name not in _CHANGED:
        return make(True)
    older, newer = make(False), make(True)
    return lambda scope: newer(scope) if scope.newer else older(scope)


def _function(name: str, args: list[Run], overloads: tuple[str, ...] | None, stops: bool) -> Run:
    if name in FUNCTIONS:
        return _either(name, lambda newer: _function_of(name, args, overloads, newer, stops))
    if args:
        return _member(name, args, overloads, stops)

    def run(scope: Scope) -> Any:
        raise EvaluationError(f"unknown function: {name}")

    return run


def _function_of(name: str, args: list[Run], overloads: tuple[str, ...] | None, newer: bool, stops: bool) -> Run:
    function = (NEWER_FUNCTIONS if newer else FUNCTIONS)[name]
    charge = _charging(name, call_cost(name, overloads, newer=newer, is_member=False))
    failed = _charging_failure(name, charge, overloads)
    if len(args) == 2:
        first, second = args
        is_equality = name in ("_==_", "_!=_")

        def run_two(scope: Scope) -> Any:
            try:
                one = first(scope)
            except EvaluationError as error:
                if not stops:
                    failed(scope, (_Broken(error), _attempt(second, scope)))
                raise
            try:
                two = second(scope)
            except EvaluationError as error:
                failed(scope, (one, _Broken(error)))
                raise
            if charge is None or (one.__class__ in PLAIN and two.__class__ in PLAIN):
                scope.spent += 1
            elif is_equality and one.__class__ is str and two.__class__ is str:
                scope.spent += tenth(min(len(one), len(two)))
            else:
                charge(scope, (one, two))
            return function(one, two)

        return run_two
    if len(args) == 1:
        only, always = args[0], name == "lists.range"

        def run_one(scope: Scope) -> Any:
            try:
                value = only(scope)
            except EvaluationError as error:
                failed(scope, (_Broken(error),))
                raise
            if charge is None or (value.__class__ in PLAIN and not always):
                scope.spent += 1
            else:
                charge(scope, (value,))
            return function(value)

        return run_one

    def run(scope: Scope) -> Any:
        given = _arguments(args, scope, failed, stops)
        if charge is None:
            scope.spent += 1
        else:
            charge(scope, given)
        return _applied(name, function, given)

    return run


def _charging(name: str, cost: Count | None) -> Charge | None:
    """Return how a call is charged; None if it costs 1 and no work."""
    work = WORK.get(name)
    if cost is None and work is None:
        return None

    def charge(scope: Scope, given: Any) -> None:
        # Counting may fail for arguments that the function does not take: it says so itself.
        if work is not None:
            with suppress(TypeError, AttributeError, IndexError):
                scope.charge(0, work(given))
        units = 1
        if cost is not None:
            with suppress(TypeError, AttributeError, IndexError):
                units = cost(given)
        scope.charge(units, 0)

    return charge


def _charging_failure(name: str, charge: Charge | None, overloads: tuple[str, ...] | None) -> Charge:
    """Return how a call is charged that is not made, because evaluating an argument has failed."""
    is_resolved = overloads is None or len(overloads) == 1 or name not in UNRESOLVED_COSTS
    cost = COSTS_OF_FAILURE[name] if name in COSTS_OF_FAILURE and is_resolved else 1
    if cost == 1 and charge is not None and is_resolved and name not in COSTS_OF_FAILURE:
        if name != "flatten":
            return charge
        cost = None

    def fixed(scope: Scope, given: Any) -> None:
        if cost is not None:
            scope.spent += cost
        elif name == "flatten" and charge is not None and (len(given) == 1 or given[1].__class__ is not _Broken):
            charge(scope, given)
        else:
            raise CutOff("internal error: the reference takes the error for a value")

    return fixed


def _arguments(args: list[Run], scope: Scope, failed: Charge, stops: bool) -> list[Any]:
    """Evaluate the arguments of a call. Of two the second is evaluated even after the first has failed, unless `stops`; of
    three or more none is evaluated after a failure, and the call then costs nothing unless the last one failed."""
    given: list[Any] = []
    for arg in args:
        try:
            given.append(arg(scope))
        except EvaluationError as error:
            given.append(_Broken(error))
            if len(args) == 2 and len(given) == 1 and not stops:
                given.append(_attempt(args[1], scope))
            if len(given) == len(args):
                failed(scope, given)
            raise
    return given


def _member(name: str, args: list[Run], overloads: tuple[str, ...] | None, stops: bool) -> Run:
    made = _either(name, lambda newer: _member_of(name, args, overloads, newer, stops))
    return _of_one_kind(name, args, overloads[0]) if name in SUMMARIES and overloads and len(overloads) == 1 else made


def _of_one_kind(name: str, args: list[Run], overload: str) -> Run:
    """Return a call on a list whose elements the check takes to be of one kind; lists of others are refused.

    Example: what `[].reverse()` holds is not known, and the first overload of `sum` fits it: it takes a list of ints.
    """
    kind = SUMMARIES[name][int(overload.rpartition("_")[2])]
    function, cost = collections.LIST_MEMBERS[name], call_cost(name, overloads=None, newer=True, is_member=True)
    charge = _charging(name, cost)
    failed = _charging_failure(name, charge, None)

    def run(scope: Scope) -> Any:
        (values,) = _arguments(args, scope, failed, False)
        if charge is not None:
            charge(scope, (values,))
        if not isinstance(values, list) or (values and type_name(values[0]) != kind):
            raise no_overload(name, values)
        if not values and name == "sum":
            return collections.NOTHING_ADDED[kind]
        return function(values)

    return run


def _member_of(name: str, args: list[Run], overloads: tuple[str, ...] | None, newer: bool, stops: bool) -> Run:
    charge = _charging(name, call_cost(name, overloads, newer=newer, is_member=True))
    failed = _charging_failure(name, charge, overloads)
    known = [(kind, members[name]) for kind, members in (NEWER_MEMBERS if newer else MEMBERS) if name in members]

    def run(scope: Scope) -> Any:
        given = _arguments(args, scope, failed, stops)
        value = given[0]
        if charge is None:
            scope.spent += 1
        else:
            charge(scope, given)
        if name == "distinct" and not isinstance(value, list):
            raise CutOff("internal error: the reference takes any value for a list")
        for kind, function in known:
            if isinstance(value, kind):
                return _applied(name, function, given)
        if name == "size":
            return standard.GLOBALS["size"](value)
        if name == "includes" and len(given) == 2:
            return collections.includes(value, given[1])
        raise no_overload(name, *given)

    return run


def _applied(name: str, function: Callable[..., Any], arguments: list[Any]) -> Any:
    try:
        return function(*arguments)
    except (TypeError, AttributeError):  # the wrong number or the wrong types of arguments, found too late to check
        raise no_overload(name, *arguments) from None


def _logic(left: Run, right: Run, name: str, deciding: bool) -> Run:
    def run(scope: Scope) -> bool:
        error: EvaluationError | None = None
        try:
            value: object = left(scope)
            if value is deciding:
                return deciding
            if value.__class__ is not bool:
                error = no_overload(name, value)
        except EvaluationError as failure:
            error = failure
        try:
            value = right(scope)
            if value is deciding:
                return deciding
            if value.__class__ is not bool:
                error = error or no_overload(name, value)
        except EvaluationError as failure:
            error = error or failure
        if error is not None:
            raise error
        return not deciding

    return run


def _conditional(question: Run, then: Run, otherwise: Run) -> Run:
    def run(scope: Scope) -> Any:
        answer = question(scope)
        if not isinstance(answer, bool):
            raise no_overload("_?_:_", answer)
        return then(scope) if answer else otherwise(scope)

    return run


def _not_strictly_false(operand: Run) -> Run:
    def run(scope: Scope) -> bool:
        scope.spent += 1
        try:
            return operand(scope) is not False
        except EvaluationError:
            return True

    return run


def _map_insert(args: list[Run]) -> Run:
    failed = _charging_failure("cel.@mapInsert", None, None)

    def run(scope: Scope) -> dict[Any, Any]:
        into, *added = _arguments(args, scope, failed, False)
        made = dict(into)
        scope.charge(1, len(into) + (len(added[0]) if len(added) == 1 else 1))
        _insert(made, added[0] if len(added) == 1 else {added[0]: added[1]})
        return made

    return run


def _insert(into: dict[Any, Any], added: dict[Any, Any]) -> None:
    for key in added:
        if key in into:
            raise EvaluationError(f"insert failed: key {as_text(key)} already exists")
    into.update(added)


def _list(node: MakeList) -> Run:
    elements = [build(element) for element in node.elements]

    def run(scope: Scope) -> list[Any]:
        scope.spent += LIST
        if not node.optional:
            return [element(scope) for element in elements]
        values = []
        for i, element in enumerate(elements):
            value = element(scope)
            if i not in node.optional:
                values.append(value)
            elif not isinstance(value, Optional):
                raise EvaluationError(f"cannot initialize optional list element from non-optional value {as_text(value)}")
            elif value.is_there:
                values.append(value.value)
        return values

    return run


def _map(node: MakeMap) -> Run:
    entries = [(build(entry.key), build(entry.value), entry.is_optional) for entry in node.entries]

    def run(scope: Scope) -> dict[Any, Any]:
        scope.spent += MAP
        made: dict[Any, Any] = {}
        for key_of, value_of, is_optional in entries:
            key, value = key_of(scope), value_of(scope)
            if not isinstance(key, (bool, int, str)):
                raise EvaluationError(f"unsupported key type: {type_name(key)}")
            if not is_optional:
                made[key] = value
            elif not isinstance(value, Optional):
                text = f"'{as_text(key)}' from non-optional value {as_text(value)}"
                raise EvaluationError(f"cannot initialize optional entry {text}")
            elif value.is_there:
                made[key] = value.value
        return made

    return run


def _comprehension(node: Comprehension) -> Run:
    over, start, condition = build(node.over), build(node.start), build(node.condition)
    plain_step, result = build(node.step), build(node.result)
    step = _growing(node, node.step) or plain_step
    names = [name for name in (node.variable, node.second_variable, node.accumulator) if name]
    is_bind = node.over == _EMPTY_LIST
    fresh = list if node.start == _EMPTY_LIST else dict if node.start == _EMPTY_MAP else None

    def run(scope: Scope) -> Any:
        elements = over(scope)
        before = {name: scope[name] for name in names if name in scope}
        try:
            if is_bind:
                scope[node.accumulator] = _unread(start, scope)
                return result(scope)
            scope[node.accumulator] = fresh() if fresh is not None else _attempt(start, scope)
            for first, second in _pairs(elements, bool(node.second_variable)):
                if scope.spent > COST_LIMIT:
                    raise CutOff
                scope[node.variable] = first
                if node.second_variable:
                    scope[node.second_variable] = second
                if condition(scope) is False:
                    break
                # After a failure the loop goes on, because a later element may still decide.
                has_failed = scope[node.accumulator].__class__ is _Broken
                scope[node.accumulator] = _attempt(plain_step if has_failed else step, scope)
            return result(scope)
        finally:
            for name in names:
                scope.pop(name, None)
            scope.update(before)

    return run


def _unread(start: Run, scope: Scope) -> _Unread:
    spent = scope.spent
    value = _attempt(start, scope)
    cost, scope.spent = scope.spent - spent, spent
    scope.charge(0, cost)  # it is work all the same, even if nobody ever reads it
    return _Unread(value, cost)


def _growing(comprehension: Comprehension, step: Node) -> Run | None:
    """Return a step that only adds to a list or map of its own, as `map` and `filter` do, without copying it each time."""
    mine = Ident(comprehension.accumulator)
    match step:
        case Call(None, "_?_:_", (question, then, otherwise)) if otherwise == mine:
            grow = _growing(comprehension, then)
            return _conditional(build(question), grow, _ident(mine.name, 0)) if grow is not None else None
        case Call(None, "_+_", (left, MakeList() as right)) if left == mine and isinstance(comprehension.start, MakeList):
            accumulator, added = build(mine), build(right)

            def extend(scope: Scope) -> Any:
                grown = accumulator(scope)
                try:
                    grown += added(scope)
                finally:
                    scope.spent += 1
                return grown

            return extend
        case Call(None, "cel.@mapInsert", (left, *rest)) if left == mine and isinstance(comprehension.start, MakeMap):
            accumulator, parts = build(mine), [build(part) for part in rest]

            def insert(scope: Scope) -> Any:
                grown = accumulator(scope)
                try:
                    given = [part(scope) for part in parts]
                except EvaluationError:
                    scope.spent += 1
                    raise
                scope.charge(1, len(given[0]) if len(given) == 1 else 1)
                _insert(grown, given[0] if len(given) == 1 else {given[0]: given[1]})
                return grown

            return insert
    return None


def _pairs(value: Any, both: bool) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, list):
        return enumerate(value) if both else zip(value, value, strict=True)
    if isinstance(value, dict):
        return iter(value.items())
    raise EvaluationError(f"got '{type_name(value)}', expected iterable type")


def _attempt(part: Run, scope: Scope) -> Any:
    try:
        return part(scope)
    except EvaluationError as error:
        return _Broken(error)
