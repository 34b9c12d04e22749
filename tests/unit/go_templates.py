"""A small renderer of the Go templates that our Helm chart uses, for machines without helm.

In: template texts and values. Out: text. It knows actions with trimming, if / else if / else, with, range, define,
include, pipelines, strings, numbers, fields and `$`, and the dozen functions that the chart calls. Everything else
raises, so a chart that outgrows it is noticed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

_ACTION = re.compile(r"\{\{(-?)(.*?)(-?)\}\}", re.DOTALL)
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\(|\)|\||[^\s()|]+')


@dataclass
class _Block:
    """A run of nodes; texts, actions, or blocks with their branches."""

    kind: str
    argument: str = ""
    body: list[Any] = field(default_factory=list)
    other: list[Any] = field(default_factory=list)


class Templates:
    """All templates of a chart."""

    def __init__(self) -> None:
        self._named: dict[str, _Block] = {}

    def add(self, text: str) -> list[Any]:
        """Parse a file; its definitions are known from now on. Return what is outside of them."""
        nodes, stop = _parse(_tokens(text))
        assert stop is None, f"unexpected {stop}"
        return [node for node in nodes if not self._is_definition(node)]

    def _is_definition(self, node: Any) -> bool:
        if isinstance(node, _Block) and node.kind == "define":
            self._named[json.loads(node.argument)] = node
            return True
        return False

    def render(self, nodes: list[Any], dot: Any, root: Any) -> str:
        """Return the text that nodes make of a value."""
        made = []
        for node in nodes:
            if isinstance(node, str):
                made.append(node)
            elif node.kind == "action":
                value = self._pipeline(node.argument, dot, root)
                made.append("" if value is None else _text(value))
            elif node.kind == "if":
                branch = node.body if _is_true(self._pipeline(node.argument, dot, root)) else node.other
                made.append(self.render(branch, dot, root))
            elif node.kind == "with":
                value = self._pipeline(node.argument, dot, root)
                inner = self.render(node.body, value, root) if _is_true(value) else self.render(node.other, dot, root)
                made.append(inner)
            elif node.kind == "range":
                values = self._pipeline(node.argument, dot, root) or []
                made += [self.render(node.body, value, root) for value in values]
            else:
                raise ValueError(f"{node.kind} is not known here")
        return "".join(made)

    def _pipeline(self, text: str, dot: Any, root: Any) -> Any:
        words = _WORD.findall(text)
        value, rest = self._piped(words, dot, root)
        assert not rest, f"{text}: {rest} is left over"
        return value

    def _piped(self, words: list[str], dot: Any, root: Any) -> tuple[Any, list[str]]:
        value: Any = None
        is_first = True
        while True:
            value, words = self._call(words, dot, root, [] if is_first else [value])
            is_first = False
            if not words or words[0] != "|":
                return value, words
            words = words[1:]

    def _call(self, words: list[str], dot: Any, root: Any, last: list[Any]) -> tuple[Any, list[str]]:
        name, arguments = None, []
        while words and words[0] not in ("|", ")"):
            word, words = words[0], words[1:]
            if word == "(":
                value, words = self._piped(words, dot, root)
                assert words and words[0] == ")", "a parenthesis is not closed"
                words = words[1:]
                arguments.append(value)
            elif name is None and not arguments and re.fullmatch(r"[a-zA-Z]\w*", word) and word not in ("true", "false"):
                name = word
            else:
                arguments.append(_operand(word, dot, root))
        if name is None:
            assert len(arguments) == 1 and not last, f"{arguments} cannot be called"
            return arguments[0], words
        return self._function(name)(*arguments, *last), words

    def _function(self, name: str) -> Callable[..., Any]:
        if name == "include":
            return lambda template, dot: self.render(self._named[template].body, dot, dot)
        return _FUNCTIONS[name]


def _operand(word: str, dot: Any, root: Any) -> Any:
    if word.startswith('"'):
        return json.loads(word)
    if re.fullmatch(r"-?\d+", word):
        return int(word)
    if word in ("true", "false"):
        return word == "true"
    if word.startswith("$"):
        dot, word = root, word[1:]
    assert word.startswith(".") or not word, f"{word!r} is not known here"
    for part in filter(None, word.split(".")):
        dot = dot.get(part) if isinstance(dot, dict) else getattr(dot, part)
    return dot


def _to_yaml(value: Any) -> str:
    return str(yaml.safe_dump(value, default_flow_style=False)).rstrip("\n")


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "and": lambda *values: next((value for value in values if not _is_true(value)), values[-1]),
    "default": lambda fallback, value: value if _is_true(value) else fallback,
    "eq": lambda first, *others: first in others,
    "list": lambda *values: list(values),
    "nindent": lambda n, text: "\n" + "\n".join(" " * n + line if line else "" for line in text.split("\n")),
    "not": lambda value: not _is_true(value),
    "or": lambda *values: next((value for value in values if _is_true(value)), values[-1]),
    "quote": lambda value: json.dumps(_text(value)),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "toYaml": _to_yaml,
}


def _is_true(value: Any) -> bool:
    return bool(value)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield texts and actions, with white space trimmed where an action asks for it."""
    at, trims = 0, False
    for found in _ACTION.finditer(text):
        before = text[at : found.start()]
        before = before.lstrip() if trims else before
        yield "text", before.rstrip() if found[1] else before
        if not found[2].strip().startswith("/*"):
            yield "action", found[2].strip()
        at, trims = found.end(), bool(found[3])
    yield "text", text[at:].lstrip() if trims else text[at:]


def _parse(tokens: Iterator[tuple[str, str]]) -> tuple[list[Any], str | None]:
    """Return nodes up to the end, an `else` or an `end`, and which of them it was."""
    nodes: list[Any] = []
    for kind, text in tokens:
        if kind == "text":
            nodes.append(text)
            continue
        word, _, argument = text.partition(" ")
        if word in ("end", "else"):
            return nodes, text
        if word in ("if", "with", "range", "define"):
            nodes.append(_block(word, argument, tokens))
        else:
            nodes.append(_Block("action", text))
    return nodes, None


def _block(kind: str, argument: str, tokens: Iterator[tuple[str, str]]) -> _Block:
    body, stop = _parse(tokens)
    block = _Block(kind, argument, body)
    if stop is not None and stop.startswith("else if "):
        block.other = [_block("if", stop.removeprefix("else if "), tokens)]
    elif stop == "else":
        block.other, stop = _parse(tokens)
        assert stop == "end", f"{kind} {argument} is not ended"
    else:
        assert stop == "end", f"{kind} {argument} is not ended"
    return block
