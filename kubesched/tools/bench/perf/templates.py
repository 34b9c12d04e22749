"""The part of Go's text/template that scheduler_perf's object files use.

In: the text of a template, and the values of its fields. Out: text. For example `name: p-{{.Index}}` with Index 3 becomes
`name: p-3`, and `{{range $i := 2}}a{{$i}} {{end}}` becomes `a0 a1 `.

Supported are text, comments and trim markers, pipelines with parentheses, fields, variables, strings, numbers, `if`, `else if`,
`else`, `range` over a number or a list, comparisons, and scheduler_perf's own arithmetic functions. Anything else raises
ConfigError while the template is parsed, before a cluster is started for it.

A template is parsed into closures: each `Part` takes the variables and returns text, each `Expression` returns a value.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kubesched.errors import ConfigError

_ACTION = re.compile(r"\{\{(-(?=\s))?(.*?)((?<=\s)-)?\}\}", re.DOTALL)
_TOKEN = re.compile(r'\s*(?:("(?:[^"\\\n]|\\.)*"|`[^`]*`)|(:=|[|()])|([^\s|()"`:]+))')
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?\Z")
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_SETTING = re.compile(r"(\$\w+)\s*:=(.*)\Z", re.DOTALL)
_CONSTANTS = {"true": True, "false": False, "nil": None}
_PATH = re.compile(r"(\$\w*)?((?:\.[A-Za-z_]\w*)*)\Z")


class Rendering(Exception):
    """A function was given a value that it does not take. `Template.render` adds the name of the file."""


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


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "AddFloat": lambda *values: sum(map(_float, values), 0.0),
    "AddInt": lambda *values: int(sum(map(_float, values))),
    "SubtractFloat": lambda a, b: _float(a) - _float(b),
    "SubtractInt": lambda a, b: int(_float(a) - _float(b)),
    "MultiplyFloat": lambda *values: math.prod(map(_float, values), start=1.0),
    "MultiplyInt": lambda *values: int(math.prod(map(_float, values))),
    "DivideFloat": _divide,
    "DivideInt": lambda a, b: int(_divide(a, b)),
    "Mod": _modulo,
    "Int": _int,
    "JSON": lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True),
    "and": lambda *values: next((value for value in values if not value), values[-1]),
    "or": lambda *values: next((value for value in values if value), values[-1]),
    "not": operator.not_,
    "eq": lambda first, *others: first in others,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "len": len,
}


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
"""The variables by name; the name of the current value is `.`."""
Expression = Callable[[Scope], Any]
Part = Callable[[Scope], str]
"""A text or an action."""


class Template:
    """A parsed template. `is_constant` is true if it has no action, so that it always renders the same text."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self._variables: set[str] = {"$"}
        self._tokens = _split(text)
        self.is_constant = True
        self._parts, stop = self._block()
        if stop:
            raise self._error(f"{{{{{stop}}}}} without a beginning")

    def render(self, values: Mapping[str, Any]) -> str:
        """Return the text for these values."""
        try:
            return _joined(self._parts, {".": values, "$": values})
        except (Rendering, TypeError) as error:
            raise self._error(str(error)) from error

    def _error(self, text: str) -> ConfigError:
        return ConfigError(self.name, text)

    # Parsing

    def _block(self) -> tuple[list[Part], str]:
        """Return the parts up to the next `end` or `else`, and that action; empty at the end of the text."""
        parts: list[Part] = []
        for text, is_action in self._tokens:
            if not is_action:
                parts.append(_always(text))
                continue
            word, _, rest = text.partition(" ")
            if word in ("end", "else"):
                return parts, text
            self.is_constant = False
            parts.append(self._action(word, rest, text))
        return parts, ""

    def _action(self, word: str, rest: str, text: str) -> Part:
        if word == "if":
            return self._if(rest)
        if word == "range":
            return self._range(rest)
        if word in ("with", "define", "template", "block", "break", "continue"):
            raise self._error(f"the template action {word!r} is not known")
        if found := _SETTING.match(text):
            name, value = found[1], self._pipeline(found[2])
            self._variables.add(name)

            def set_variable(scope: Scope) -> str:
                scope[name] = value(scope)
                return ""

            return set_variable
        shown = self._pipeline(text)
        return lambda scope: printed(shown(scope))

    def _if(self, condition: str) -> Part:
        branches: list[tuple[Expression, list[Part]]] = []
        test, stop = self._pipeline(condition), ""
        while stop != "end":
            body, last = self._block()
            branches.append((test, body))
            if not last or (stop == "else" and last != "end"):
                raise self._error("an if has no end")
            if last.startswith("else if "):
                test = self._pipeline(last.removeprefix("else if "))
            elif last == "else":
                test = _always(True)
            elif last != "end":
                raise self._error(f"the template action {last!r} is not known")
            stop = last

        def choose(scope: Scope) -> str:
            return next((_joined(body, dict(scope)) for test, body in branches if test(scope)), "")

        return choose

    def _range(self, text: str) -> Part:
        found = _SETTING.match(text)
        variable, values_of = (found[1] if found else "."), self._pipeline(found[2] if found else text)
        self._variables.add(variable)
        body, stop = self._block()
        otherwise: list[Part] = []
        if stop == "else":
            otherwise, stop = self._block()
        if stop != "end":
            raise self._error("a range has no end")

        def repeat(scope: Scope) -> str:
            over = values_of(scope)
            if isinstance(over, bool) or not isinstance(over, int | list | None):
                raise Rendering(f"range cannot go over {printed(over)}")
            values = range(over) if isinstance(over, int) else over or ()
            if not values:
                return _joined(otherwise, dict(scope))
            return "".join(_joined(body, {**scope, ".": value, variable: value}) for value in values)

        return repeat

    def _pipeline(self, text: str) -> Expression:
        words, place, text = [], 0, text.strip()
        while place < len(text):
            token = _TOKEN.match(text, place)
            if token is None:
                raise self._error(f"{{{{{text}}}}} is not understood")
            words.append(token[1] or token[2] or token[3])
            place = token.end()
        made = self._commands(words)
        if words:
            raise self._error(f"unexpected {words[0]!r} in {{{{{text}}}}}")
        return made

    def _commands(self, words: list[str]) -> Expression:
        """Parse commands joined by `|`: the result of each is the last argument of the next."""
        made = self._command(words, None)
        while words and words[0] == "|":
            words.pop(0)
            made = self._command(words, made)
        return made

    def _command(self, words: list[str], piped: Expression | None) -> Expression:
        if not words or words[0] in ("|", ")"):
            raise self._error("a command is missing")
        name = words[0]
        if _NAME.match(name) and name not in _CONSTANTS:
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
            return _always(json.loads(word) if word[0] == '"' else word[1:-1])
        if _NUMBER.match(word):
            return _always(float(word) if "." in word else int(word))
        if word in _CONSTANTS:
            return _always(_CONSTANTS[word])
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
    """Yield texts and actions in order, each with whether it is an action; trim markers are applied."""
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


def _always(value: Any) -> Expression:
    return lambda scope: value


def _joined(parts: list[Part], scope: Scope) -> str:
    return "".join([part(scope) for part in parts])
