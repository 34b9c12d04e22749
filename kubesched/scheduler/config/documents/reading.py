"""JSON text as a tree for the strict decoder, with the error texts of Go's JSON scanner.

A tree consists of None, bool, str, `Number` (the digits as written), list, and `Object` (the pairs in order, with repeated
keys). A library for JSON drops repeated keys and has its own error texts, so the reader is written here. Text that starts with
`{` is JSON; other text is YAML (`yamltext`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TypeAlias

from kubesched.errors import ConfigError
from kubesched.kube.values import LONGEST_NUMBER


class Number(str):
    """A number with the digits of the document."""

    __slots__ = ()

    @property
    def is_integer(self) -> bool:
        return _INTEGER.fullmatch(self) is not None

    def __int__(self) -> int:
        return int(str(self))

    def __float__(self) -> float:
        return float(str(self))


@dataclass(frozen=True, slots=True)
class Object:
    """A JSON object: its pairs in order."""

    pairs: tuple[tuple[str, Value], ...] = ()

    def get_folded(self, name: str) -> Value:
        """Return the last value whose key is `name` in any case, as Go looks for kind and apiVersion."""
        found: Value = None
        for key, value in self.pairs:
            if key.casefold() == name.casefold() and value is not None:
                found = value
        return found


Value: TypeAlias = "bool | str | Number | list[Value] | Object | None"

_INTEGER = re.compile(r"-?[0-9]+")
_SPACE = " \t\r\n"
_LITERALS: dict[str, bool | None] = {"true": True, "false": False, "null": None}


def compact(value: Value) -> str:
    """Return a tree as JSON without spaces."""
    if isinstance(value, Object):
        return "{" + ",".join(f"{json.dumps(key)}:{compact(item)}" for key, item in value.pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(compact(item) for item in value) + "]"
    if isinstance(value, Number):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def is_json(text: str) -> bool:
    """Return whether kube-scheduler reads this text as JSON."""
    # Kept quirk: only the first character decides. A list `[...]` is read as YAML, which has the same value and other error
    # texts.
    return text.lstrip(" \t\r\n\v\f\x85\xa0").startswith("{")


def read_json(text: str) -> Value:
    """Return the tree of a JSON document."""
    try:
        return _Json(text).document()
    except RecursionError as error:
        raise ConfigError("", "exceeded max depth") from error


class _Json:
    """A recursive JSON reader; `at` is the position in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def document(self) -> Value:
        value = self._value()
        # Anything but white space after the document: also a second document.
        if self._skip_space():
            raise self._refuse("after top-level value")
        return value

    def _skip_space(self) -> str:
        """Skip whitespace; return the next character, or "" at the end."""
        while self.at < len(self.text) and self.text[self.at] in _SPACE:
            self.at += 1
        return self._here()

    def _here(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def _refuse(self, context: str, *, in_word: bool = False) -> ConfigError:
        """Return the error at the current position; `in_word`: inside a literal, a number or an escape."""
        if self.at >= len(self.text):
            # At the end of the text Go feeds its scanner a space. Inside a word the space is the error.
            text = f"invalid character ' ' {context}" if in_word else "unexpected end of JSON input"
            return ConfigError("", text)
        # Go scans bytes, and shows the first byte of a character as a character.
        char = chr(self.text[self.at].encode("utf-8", "surrogatepass")[0])
        shown = {"'": r"'\''", "\\": r"'\\'"}.get(char) or f"'{char}'"
        if not char.isprintable():
            shown = f"'{char.encode('unicode_escape').decode()}'"
        return ConfigError("", f"invalid character {shown} {context}")

    def _value(self) -> Value:
        match self._skip_space():
            case "{":
                return self._object()
            case "[":
                return self._array()
            case '"':
                return self._string()
            case "t" | "f" | "n":
                return self._literal()
            case "-" | "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9":
                return self._number()
        raise self._refuse("looking for beginning of value")

    def _object(self) -> Object:
        pairs: list[tuple[str, Value]] = []
        self.at += 1
        if self._skip_space() == "}":
            self.at += 1
            return Object()
        while True:
            if self._skip_space() != '"':
                raise self._refuse("looking for beginning of object key string")
            key = self._string()
            if self._skip_space() != ":":
                raise self._refuse("after object key")
            self.at += 1
            # A list of pairs and not a dict: repeated keys must be reported, and a later one wins.
            pairs.append((key, self._value()))
            end = self._skip_space()
            if end not in (",", "}") or not end:
                raise self._refuse("after object key:value pair")
            self.at += 1
            if end == "}":
                return Object(tuple(pairs))

    def _array(self) -> list[Value]:
        items: list[Value] = []
        self.at += 1
        if self._skip_space() == "]":
            self.at += 1
            return items
        while True:
            items.append(self._value())
            end = self._skip_space()
            if end not in (",", "]") or not end:
                raise self._refuse("after array element")
            self.at += 1
            if end == "]":
                return items

    def _string(self) -> str:
        """Read a string. Its end is found here, for Go's errors; the json module decodes the escapes."""
        start = self.at
        self.at += 1
        while True:
            char = self._here()
            if char == '"':
                self.at += 1
                # Lone surrogates become the replacement character, as everywhere in Go.
                text: str = json.loads(self.text[start : self.at])
                return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            if not char or ord(char) < 0x20:
                raise self._refuse("in string literal")
            self.at += 1
            if char == "\\":
                self._escape()

    def _escape(self) -> None:
        char = self._here()
        if not char or char not in 'bfnrt\\/"u':
            raise self._refuse("in string escape code", in_word=True)
        self.at += 1
        if char == "u":
            for _ in range(4):
                if self._here() not in "0123456789abcdefABCDEF" or not self._here():
                    raise self._refuse("in \\u hexadecimal character escape", in_word=True)
                self.at += 1

    def _literal(self) -> bool | None:
        # The first letter decides which word is expected. The error names the letter that is missing, as Go's scanner does.
        word = next(word for word in _LITERALS if word[0] == self._here())
        for at, wanted in enumerate(word):
            if self._here() != wanted:
                raise self._refuse(f"in literal {word} (expecting '{word[at]}')", in_word=True)
            self.at += 1
        return _LITERALS[word]

    def _number(self) -> Number:
        """Read a number: sign, integer part without leading zeros, fraction, exponent."""
        start = self.at
        if self._here() == "-":
            self.at += 1
            if not self._digit():
                raise self._refuse("in numeric literal", in_word=True)
        # JSON knows no leading zeros: after a 0 the number ends here, and `01` is an error at the 1.
        if self._here() == "0":
            self.at += 1
        else:
            self._digits()
        if self._here() == ".":
            self.at += 1
            if not self._digit():
                raise self._refuse("after decimal point in numeric literal", in_word=True)
            self._digits()
        if self._here() and self._here() in "eE":
            self.at += 1
            if self._here() and self._here() in "+-":
                self.at += 1
            if not self._digit():
                raise self._refuse("in exponent of numeric literal", in_word=True)
            self._digits()
        # Python's int() of a million digits takes seconds: a bound on what a file can cost.
        if self.at - start > LONGEST_NUMBER:
            raise ConfigError("", f"a number of {self.at - start} digits")
        return Number(self.text[start : self.at])

    def _digit(self) -> bool:
        return self._here() != "" and self._here() in "0123456789"

    def _digits(self) -> None:
        while self._digit():
            self.at += 1
