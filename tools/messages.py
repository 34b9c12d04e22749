"""Every text with which a pod can be refused, read off the code that says it.

In: the source of plugins, framework and engine. Out: `Message`: a text with `…` where something is filled in, and the file
that says it.
What is passed to `Reason`, `unschedulable`, `unresolvable`, `failed` and `Status`, what members of a group are told, and what
the errors of plugins carry counts; constants, local names and functions that return a text are followed. What `cel` says is
quoted by `CEL compile error: …` and `CEL runtime error: …`, and is about expressions.

    python tools/messages.py       # lists them
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "kubesched"
FILLED_IN = "…"
_ROOMS = ("scheduler/plugins", "scheduler/framework", "scheduler/engine", "contrib")
_SAYS = {"Reason", "_never", "unschedulable", "unresolvable", "failed", "Status", "GroupRefusal", "Failed", "Unschedulable"}
_TELLS = {"reject": ("", ""), "_fail_all": ("", ""), "error_of": (FILLED_IN, ""), "_patch_status": ("", f": {FILLED_IN}")}
"""Methods that pass a text on to pods, and what they put before and behind it."""
_CONSTANTS_OF = (
    "scheduler/plugins",
    "scheduler/engine/acting/binding",
    "scheduler/engine/deciding/cycle",
    "scheduler/engine/groups/group",
    "scheduler/engine/groups/pod_groups",
    "scheduler/framework/runtime/binding_points",
    "scheduler/framework/runtime/group_points",
)
"""Where a constant of several words is a text for users, also where the way from it to a pod is long."""
_MOST_STEPS = 5


@dataclass(frozen=True, slots=True, order=True)
class Message:
    """A text, and the file below the package that says it."""

    text: str
    file: str


@cache
def all_messages() -> list[Message]:
    """Return every message, sorted."""
    files = [path for room in _ROOMS for path in sorted((PACKAGE / room).rglob("*.py")) if _is_read(path)]
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}
    book = _Book(trees)
    found = set()
    for path, tree in trees.items():
        said = [*book.said_in(path, tree), *book.constants_of(path, tree)]
        for text in said:
            if sum(letter.isalpha() for letter in text) > 3:
                found.add(Message(" ".join(text.split()), str(path.relative_to(PACKAGE))))
    return sorted(found)


def _is_read(path: Path) -> bool:
    return not path.name.startswith("legacy")


class _Book:
    """What names stand for: module constants, and functions by what they return."""

    def __init__(self, trees: dict[Path, ast.Module]) -> None:
        self._constants: dict[str, list[ast.expr]] = {}
        self._functions: dict[tuple[Path | None, str], list[ast.AST]] = {}
        self._errors: set[str] = set()
        for path, tree in trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    self._functions.setdefault((path, node.name), []).append(node)
                    self._functions.setdefault((None, node.name), []).append(node)
                elif isinstance(node, ast.ClassDef) and "framework" not in path.parts and any(map(_is_error, node.bases)):
                    self._errors.add(node.name)
            for statement in tree.body:
                if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                    self._constants.setdefault(statement.targets[0].id, []).append(statement.value)

    def said_in(self, path: Path, tree: ast.Module) -> Iterator[str]:
        for function in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))]:
            for node in _own_nodes(function):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and "{plugin}" in node.value:
                    yield _filled(node.value)
                elif isinstance(node, ast.JoinedStr) and any("s are available" in ast.unparse(part) for part in node.values):
                    yield from self._texts(node, path, function, 0)
                elif isinstance(node, ast.Call) and (around := self._says(node.func)) is not None:
                    for given in node.args:
                        yield from (text.join(around) for text in self._texts(given, path, function, 0))

    def _says(self, function: ast.expr) -> tuple[str, str] | None:
        """Return what a function that tells pods a text puts before and behind it; None if it tells none."""
        if isinstance(function, ast.Attribute):
            return _TELLS.get(function.attr)
        return ("", "") if isinstance(function, ast.Name) and (function.id in _SAYS or function.id in self._errors) else None

    def constants_of(self, path: Path, tree: ast.Module) -> Iterator[str]:
        if not str(path.relative_to(PACKAGE)).startswith(_CONSTANTS_OF):
            return
        for statement in tree.body:
            match statement:
                case ast.Assign(value=ast.Constant(value=str(text))) if len(text.split()) > 2 and not text.endswith(" "):
                    yield _filled(text)

    def _texts(self, node: ast.AST, path: Path, function: ast.AST, steps: int) -> list[str]:
        """Return what an expression may read as."""
        if steps > _MOST_STEPS:
            return []
        match node:
            case ast.Constant(value=str(text)):
                return [_filled(text)]
            case ast.JoinedStr(values=parts):
                texts = [""]
                for part in parts:
                    more = (
                        self._texts(part, path, function, steps)
                        if isinstance(part, ast.Constant)
                        else self._inner(part, path, function, steps)
                    )
                    texts = [before + after for before in texts for after in more]
                return texts
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                ends = self._texts(right, path, function, steps) or [FILLED_IN]
                return [start + end for start in self._texts(left, path, function, steps) or [FILLED_IN] for end in ends]
            case ast.IfExp(body=body, orelse=other):
                return self._texts(body, path, function, steps) + self._texts(other, path, function, steps)
            case ast.BoolOp(values=values) | ast.Tuple(elts=values):
                return [text for value in values for text in self._texts(value, path, function, steps)]
            case ast.Starred(value=value) | ast.Subscript(value=value):
                return self._texts(value, path, function, steps)
            case ast.Name(id=name):
                local = [text for value in _assigned(function, name) for text in self._texts(value, path, function, steps + 1)]
                constants = self._constants.get(name, [])
                return local or [text for value in constants for text in self._texts(value, path, function, steps + 1)]
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="format")):
                return [
                    _filled(text)
                    for value in self._constants.get(name, [])
                    for text in self._texts(value, path, function, steps)
                ]
            case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join"), args=[joined]):
                return self._texts(joined, path, function, steps)
            case ast.DictComp(value=value) | ast.ListComp(elt=value) | ast.GeneratorExp(elt=value):
                return self._texts(value, path, function, steps)
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
                if name in _SAYS or name in ("str", "message"):
                    return []
                found = self._functions.get((path, name)) or self._functions.get((None, name), [])
                return [
                    text
                    for called in found
                    for inner in _own_nodes(called)
                    if isinstance(inner, ast.Return) and inner.value is not None
                    for text in self._texts(inner.value, path, called, steps + 1)
                ]
        return []

    def _inner(self, part: ast.AST, path: Path, function: ast.AST, steps: int) -> list[str]:
        """Return what is filled into a text: a constant's own words, or the sign for anything."""
        if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name) and part.value.id.isupper():
            return self._texts(part.value, path, function, steps + 1) or [FILLED_IN]
        return [FILLED_IN]


def _is_error(base: ast.expr) -> bool:
    return isinstance(base, ast.Name) and base.id.endswith(("Error", "Exception"))


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield what belongs to a function or module itself, without the functions in it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += ast.iter_child_nodes(node)


def _assigned(function: ast.AST, name: str) -> Iterator[ast.expr]:
    for node in _own_nodes(function):
        if (
            isinstance(node, ast.Assign) and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
        ) or (isinstance(node, ast.NamedExpr) and node.target.id == name):
            yield node.value


def _filled(text: str) -> str:
    """Return a text for `str.format` with the sign for anything in its places."""
    parts = []
    for piece in text.replace("{{", "\0").replace("}}", "\1").split("{"):
        parts.append(piece.partition("}")[2] if parts else piece)
    return FILLED_IN.join(parts).replace("\0", "{").replace("\1", "}")


if __name__ == "__main__":
    for message in all_messages():
        print(f"{message.file:45} {message.text}")
