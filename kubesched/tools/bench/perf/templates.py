"""Go's text/template, as far as scheduler_perf's object files use it.

In: a template's text, and the values that stand for `.name`. Out: text. Known are texts, comments and trim markers,
pipelines with parentheses, fields, variables, strings and numbers, `if`, `else if`, `else`, `range` over a number or a
list, comparisons, and scheduler_perf's own arithmetic. Anything else raises ConfigError with its name when the template is
parsed, so that a file which needs more is refused before a cluster is built for it.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kubesched.errors import ConfigError

_ACTION = re.compile(r"\{\{(-(?=\s))?(.*?)((?<=\s)-)?\}\}", re.DOTALL)
_TOKEN = re.compile(r'\s*(?:("(?:[^"\\\n]|\\.)*"|`[^`]*`)|(:=|[|()])|([^\s|()"`:]+))')
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?\Z")
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_PATH = re.compile(r"(\$\w*)?((?:\.[A-Za-z_]\w*)*)\Z")


class Rendering(Exception):
    """A value that a function cannot work with; becomes a ConfigError that names the file."""


# Functions


def _float(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    try:
        return float(str(value)) if isinstance(value, str) else _refuse(value, "float64")
    except ValueError:
        return _refuse(value, "float64")


def _int(value: Any) -> int:
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"[-+]?\d+", value) else int(_refuse(value, "int"))
    return int(_float(value))


def _refuse(value: Any, kind: str) -> float:
    raise Rendering(f"cannot take {printed(value)} for {kind}")


def _divide(a: Any, b: Any) -> float:
    if _float(b) == 0:
        raise Rendering("division by zero")
    return _float(a) / _float(b)


def _modulo(a: Any, b: Any) -> int:
    """Go's remainder has the sign of its first number."""
    left, right = int(_float(a)), int(_float(b))
    if right == 0:
        raise Rendering("division by zero")
    return abs(left) % abs(right) * (-1 if left < 0 else 1)


def _product(*values: Any) -> float:
    made = 1.0
    for value in values:
        made *= _float(value)
    return made


def _total(*values: Any) -> float:
    return sum(map(_float, values), 0.0)


def _equal(first: Any, *others: Any) -> bool:
    return any(first == other for other in others)


def _and(*values: Any) -> Any:
    return next((value for value in values if not is_true(value)), values[-1])


def _or(*values: Any) -> Any:
    return next((value for value in values if is_true(value)), values[-1])


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "AddFloat": _total,
    "AddInt": lambda *values: int(_total(*values)),
    "SubtractFloat": lambda a, b: _float(a) - _float(b),
    "SubtractInt": lambda a, b: int(_float(a) - _float(b)),
    "MultiplyFloat": _product,
    "MultiplyInt": lambda *values: int(_product(*values)),
    "DivideFloat": _divide,
    "DivideInt": lambda a, b: int(_divide(a, b)),
    "Mod": _modulo,
    "Int": _int,
    "JSON": lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True),
    "and": _and,
    "or": _or,
    "not": lambda value: not is_true(value),
    "eq": _equal,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "len": len,
}


def is_true(value: Any) -> bool:
    """Return what an `if` makes of a value."""
    return bool(value)


def printed(value: Any) -> str:
    """Return a value as Go prints it."""
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    if isinstance(value, list):
        return f"[{' '.join(map(printed, value))}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{printed(value[key])}' for key in sorted(value))}]"
    return str(value)


# What a template consists of

Scope = dict[str, Any]
"""The variables; `.` is kept among them."""

Expression = Callable[[Scope], Any]


class _Branch(NamedTuple):
    condition: Expression | None
    body: list[Any]


@dataclass(slots=True)
class _If:
    branches: list[_Branch] = field(default_factory=list)


@dataclass(slots=True)
class _Range:
    over: Expression
    variable: str
    body: list[Any]
    otherwise: list[Any]


@dataclass(slots=True)
class _Set:
    name: str
    value: Expression


class Template:
    """A parsed template; `is_constant` when it has no action, so that all its texts are the same."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self._variables: set[str] = {"$"}
        self._tokens = _split(text)
        self._nodes, stop = self._block()
        if stop:
            raise self._error(f"{{{{{stop}}}}} without a beginning")
        self.is_constant = all(isinstance(node, str) for node in self._nodes)

    def render(self, values: Mapping[str, Any]) -> str:
        """Return the text that the template makes of these values."""
        made: list[str] = []
        try:
            _run(self._nodes, {".": values, "$": values}, made)
        except (Rendering, TypeError) as error:
            raise self._error(str(error)) from error
        return "".join(made)

    def _error(self, text: str) -> ConfigError:
        return ConfigError(self.name, text)

    # Parsing

    def _block(self) -> tuple[list[Any], str]:
        """Return the nodes up to an `end` or `else`, and which of them ended the block."""
        nodes: list[Any] = []
        for text, is_action in self._tokens:
            if not is_action:
                nodes.append(text)
                continue
            word, _, rest = text.partition(" ")
            if word in ("end", "else"):
                return nodes, text
            nodes.append(self._action(word, rest, text))
        return nodes, ""

    def _action(self, word: str, rest: str, text: str) -> Any:
        if word == "if":
            return self._if(rest)
        if word == "range":
            return self._range(rest)
        if found := re.match(r"(\$\w+)\s*:=(.*)\Z", text, re.DOTALL):
            value = self._pipeline(found[2])
            self._variables.add(found[1])
            return _Set(found[1], value)
        if word in ("with", "define", "template", "block", "break", "continue"):
            raise self._error(f"the template action {word!r} is not known")
        return self._pipeline(text)

    def _if(self, condition: str) -> _If:
        made = _If()
        test: Expression | None = self._pipeline(condition)
        while True:
            body, stop = self._block()
            made.branches.append(_Branch(test, body))
            if stop == "end":
                return made
            if not stop or test is None:
                raise self._error("an if has no end")
            if stop.startswith("else if "):
                test = self._pipeline(stop.removeprefix("else if "))
            elif stop == "else":
                test = None
            else:
                raise self._error(f"the template action {stop!r} is not known")

    def _range(self, text: str) -> _Range:
        found = re.match(r"(\$\w+)\s*:=(.*)\Z", text, re.DOTALL)
        variable, over = (found[1], found[2]) if found else ("", text)
        expression = self._pipeline(over)
        if variable:
            self._variables.add(variable)
        body, stop = self._block()
        otherwise: list[Any] = []
        if stop == "else":
            otherwise, stop = self._block()
        if stop != "end":
            raise self._error("a range has no end")
        return _Range(expression, variable, body, otherwise)

    def _pipeline(self, text: str) -> Expression:
        words = _words(text, self._error)
        made = self._commands(words)
        if words:
            raise self._error(f"unexpected {words[0]!r} in {{{{{text}}}}}")
        return made

    def _commands(self, words: list[str]) -> Expression:
        """Return commands that are joined by `|`: the result of one is the last argument of the next."""
        made = self._command(words, None)
        while words and words[0] == "|":
            words.pop(0)
            made = self._command(words, made)
        return made

    def _command(self, words: list[str], piped: Expression | None) -> Expression:
        if not words or words[0] in ("|", ")"):
            raise self._error("a command is missing")
        name = words[0]
        if _NAME.match(name) and name not in ("true", "false", "nil"):
            if name not in FUNCTIONS:
                raise self._error(f"the template function {name!r} is not known")
            words.pop(0)
            arguments = self._operands(words) + ([piped] if piped is not None else [])
            return _call(name, arguments)
        operands = self._operands(words)
        if piped is not None or len(operands) != 1:
            raise self._error(f"{name} is not a function")
        return operands[0]

    def _operands(self, words: list[str]) -> list[Expression]:
        made = []
        while words and words[0] not in ("|", ")"):
            made.append(self._operand(words))
        return made

    def _operand(self, words: list[str]) -> Expression:
        word = words.pop(0)
        if word == "(":
            made = self._commands(words)
            if not words or words.pop(0) != ")":
                raise self._error("a parenthesis is not closed")
            return made
        if word[0] in '"`':
            text = json.loads(word) if word[0] == '"' else word[1:-1]
            return lambda scope: text
        if _NUMBER.match(word):
            number = float(word) if "." in word else int(word)
            return lambda scope: number
        if word in ("true", "false", "nil"):
            constant = {"true": True, "false": False, "nil": None}[word]
            return lambda scope: constant
        if word == ".":
            return lambda scope: scope["."]
        if found := _PATH.match(word):
            root, path = found[1] or ".", [part for part in found[2].split(".") if part]
            if root != "." and root not in self._variables:
                raise self._error(f"the variable {root} is not set")
            return lambda scope: _walk(scope[root], path)
        if _NAME.match(word):
            if word in FUNCTIONS:
                return _call(word, [])
            raise self._error(f"the template function {word!r} is not known")
        raise self._error(f"{word!r} is not understood")


def _split(text: str) -> Iterator[tuple[str, bool]]:
    """Yield texts and actions, with what trim markers take away already gone."""
    place, trims = 0, False
    for found in _ACTION.finditer(text):
        before = text[place : found.start()]
        before = before.lstrip() if trims else before
        before = before.rstrip() if found[1] else before
        if before:
            yield before, False
        action, trims, place = found[2].strip(), bool(found[3]), found.end()
        if not action.startswith("/*"):
            yield action, True
    rest = text[place:].lstrip() if trims else text[place:]
    if rest:
        yield rest, False


def _words(text: str, error: Callable[[str], ConfigError]) -> list[str]:
    made, place = [], 0
    text = text.strip()
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise error(f"{{{{{text}}}}} is not understood")
        made.append(found[1] or found[2] or found[3])
        place = found.end()
    return made


def _call(name: str, arguments: list[Expression]) -> Expression:
    function = FUNCTIONS[name]

    def call(scope: Scope) -> Any:
        try:
            return function(*(argument(scope) for argument in arguments))
        except (TypeError, IndexError) as error:
            raise Rendering(f"{name} cannot work with {len(arguments)} arguments of these types: {error}") from error

    return call


def _walk(value: Any, path: list[str]) -> Any:
    for part in path:
        if not isinstance(value, Mapping):
            raise Rendering(f"there is no field {part} in {printed(value)}")
        value = value.get(part)
    return value


def _run(nodes: list[Any], scope: Scope, made: list[str]) -> None:
    for node in nodes:
        if isinstance(node, str):
            made.append(node)
        elif isinstance(node, _Set):
            scope[node.name] = node.value(scope)
        elif isinstance(node, _If):
            for condition, body in node.branches:
                if condition is None or is_true(condition(scope)):
                    _run(body, dict(scope), made)
                    break
        elif isinstance(node, _Range):
            _repeat(node, scope, made)
        else:
            made.append(printed(node(scope)))


def _repeat(node: _Range, scope: Scope, made: list[str]) -> None:
    over = node.over(scope)
    if isinstance(over, bool) or not isinstance(over, int | list | None):
        raise Rendering(f"range cannot go over {printed(over)}")
    values = range(over) if isinstance(over, int) else over or ()
    if not values:
        _run(node.otherwise, dict(scope), made)
    for value in values:
        inner = {**scope, ".": value}
        if node.variable:
            inner[node.variable] = value
        _run(node.body, inner, made)
