"""Limits on text from outside: a few bytes can stand for gigabytes, or nest deeper than any parser goes.

In: YAML, or a file, gzipped or not. Out: its documents, its bytes or its lines; or `Unbounded`, with a message of one line.
`check_yaml` runs before any loader: it follows the parser's events, so it never builds what it counts. How much aliases may
repeat is what the YAML library of kube-scheduler allows: nearly all of a small document, a tenth of a large one.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kubesched.errors import ConfigError, SchedulerError

DEEPEST = 500
LONGEST_NUMBER = 1000
LONGEST_LINE_BYTES = 64 << 20
MOST_BYTES = 4 << 30
_MOST_TIMES, _SMALL_BYTES = 200, 256 << 20
"""How much a packed file may hold for its size: what clusters are written as unpacks to 60 times as much at most."""
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"

_SMALL, _LARGE = 400_000, 4_000_000
_MOST_ALIASED, _LEAST_ALIASED = 0.99, 0.10
_NUMBER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F_]+|0[bo][0-7_]+|[-+0-9_:.]+(?:[eE][-+]?[0-9]+)?)")
_CHUNK_BYTES = 1 << 20
_WEIGHED_CHARACTERS = 100  # a long text counts as several values: it is memory, too


class Unbounded(ConfigError):
    """A text that is too large, too deep, or stands for too much."""

    def __init__(self, detail: str) -> None:
        super().__init__("", detail)


def check_yaml(text: str | bytes) -> None:
    """Raise `Unbounded` for YAML that nests too deep, expands too far or has endless numbers; leave other errors to the
    loader.
    """
    import yaml  # only when there is some: it takes a tenth of a second

    counted = _Counted()
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            line = event.start_mark.line + 1 if event.start_mark is not None else 0
            if isinstance(event, yaml.AliasEvent):
                counted.alias(event.anchor or "", line)
            elif isinstance(event, yaml.ScalarEvent):
                counted.scalar(event.anchor, 1 + len(event.value) // _WEIGHED_CHARACTERS)
                if event.implicit[0] and len(event.value) > LONGEST_NUMBER and _NUMBER.fullmatch(event.value):
                    raise Unbounded(f"yaml: line {line}: a number of {len(event.value)} digits")
            elif isinstance(event, yaml.CollectionStartEvent):
                counted.begin(event.anchor, line)
            elif isinstance(event, yaml.CollectionEndEvent):
                counted.end()
            elif isinstance(event, yaml.DocumentEndEvent):
                counted = _Counted()
    except (yaml.YAMLError, UnicodeDecodeError):
        return


def yaml_documents(text: str | bytes) -> list[Any]:
    """Return the documents of a text, with dates as texts, as JSON has them; raise ConfigError if it is not YAML."""
    import yaml

    check_yaml(text)
    try:
        return list(yaml.load_all(text, Loader=_plain_loader()))
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        # Its constructors raise whatever comes to them for a tag that does not fit the value, such as `!!bool perhaps`.
        raise ConfigError("", f"not YAML: {' '.join(str(error).split())}") from error


def yaml_document(text: str | bytes) -> Any:
    """Return the only document of a text, or None."""
    found = yaml_documents(text)
    if len(found) > 1:
        raise ConfigError("", f"one document is wanted, and {len(found)} were found")
    return found[0] if found else None


@cache
def _plain_loader() -> Any:
    import yaml

    class PlainLoader(yaml.CSafeLoader):
        """Has no dates."""

    PlainLoader.yaml_implicit_resolvers = {
        first: [one for one in resolvers if one[0] != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }
    return PlainLoader


class _Counted:
    """The number of values in a document: those that are written, and those that aliases repeat."""

    def __init__(self) -> None:
        self._n_values = self._n_repeated = 0
        self._open: list[tuple[str | None, int]] = []
        self._sizes: dict[str, int] = {}

    def scalar(self, anchor: str | None, weight: int) -> None:
        self._n_values += weight
        if anchor is not None:
            self._sizes[anchor] = weight

    def begin(self, anchor: str | None, line: int) -> None:
        if len(self._open) >= DEEPEST:
            raise Unbounded(f"yaml: line {line}: nested deeper than {DEEPEST} levels")
        if anchor is not None:
            self._sizes.pop(anchor, None)
        self._open.append((anchor, self._n_values))
        self._n_values += 1

    def end(self) -> None:
        anchor, before = self._open.pop()
        if anchor is not None:
            self._sizes[anchor] = self._n_values - before

    def alias(self, anchor: str, line: int) -> None:
        if any(anchor == each for each, _ in self._open) and anchor not in self._sizes:
            raise Unbounded(f"yaml: line {line}: anchor '{anchor}' value contains itself")
        size = self._sizes.get(anchor, 0)
        self._n_values += size
        self._n_repeated += size
        n = self._n_values
        if self._n_repeated > 100 and n > 1000 and self._n_repeated / n > _allowed_ratio(n):
            raise Unbounded(f"yaml: line {line}: document contains excessive aliasing")


def _allowed_ratio(n_values: int) -> float:
    """Return which share of a document's values aliases may repeat."""
    if n_values <= _SMALL:
        return _MOST_ALIASED
    if n_values >= _LARGE:
        return _LEAST_ALIASED
    return _MOST_ALIASED - (_MOST_ALIASED - _LEAST_ALIASED) * (n_values - _SMALL) / (_LARGE - _SMALL)


class Content(NamedTuple):
    """The unpacked content of a file."""

    data: bytes | bytearray
    is_whole: bool
    """False for a packed file that was cut off."""


def content_of(file: Path, *, may_be_cut_off: bool = False) -> Content:
    """Return the unpacked content of a file; `-` is the standard input. Raise SchedulerError if it cannot be read."""
    data = bytearray()
    try:
        for chunk in _unpacked(file):
            data += chunk
    except _CutOff:
        if not may_be_cut_off:
            raise
        return Content(data, False)
    return Content(data, True)


def lines_of(file: Path, *, may_be_cut_off: bool = False) -> Iterator[bytes]:
    """Yield the lines of a file, unpacked; `-` is the standard input. With `may_be_cut_off` only whole lines.

    Raise SchedulerError for a file that cannot be read, and `Unbounded` for a line or a file that is too long.
    """
    rest, has_lines = bytearray(), False
    try:
        for chunk in _unpacked(file):
            head, newline, tail = chunk.rpartition(b"\n")
            if newline:
                has_lines = True
                yield from bytes(rest + head).split(b"\n")
                rest = bytearray(tail)
            else:
                rest += chunk
            if len(rest) > LONGEST_LINE_BYTES:
                raise Unbounded(f"{shown(file)}: a line is longer than {LONGEST_LINE_BYTES >> 20} MiB")
    except _CutOff:
        if not may_be_cut_off:
            raise
    if rest and not may_be_cut_off:
        yield bytes(rest)
    elif rest and not has_lines:
        raise SchedulerError(f"{shown(file)}: not one whole line in it: this is no log")


def shown(file: Path | str) -> str:
    """Return the name of a file for a message."""
    return "standard input" if str(file) == "-" else str(file)


class _CutOff(SchedulerError):
    """A compressed file that ends too early."""


def _chunks(file: Path) -> Iterator[bytes]:
    """Yield a file in chunks."""
    try:
        with nullcontext(sys.stdin.buffer) if str(file) == "-" else file.open("rb") as opened:
            if not (chunk := opened.read(_CHUNK_BYTES)) and str(file) == "-":
                raise SchedulerError("standard input is empty; it can be read only once")
            while chunk:
                yield chunk
                chunk = opened.read(_CHUNK_BYTES)
    except OSError as error:
        raise SchedulerError(f"{file} cannot be read: {error.strerror or error}") from error


def _unpacked(file: Path) -> Iterator[bytes]:
    """Yield a file in chunks, unpacked if its first bytes are those of gzip."""
    n_bytes = n_packed = 0
    whole = None
    try:
        for packed in _chunks(file):
            if not n_packed and packed.startswith(_ZSTD):
                raise SchedulerError(f"{shown(file)}: packed with zstd, which is not read here: unpack it first, with zstd -d")
            if not n_packed and packed.startswith(_GZIP):
                whole = zlib.decompressobj(wbits=31)
            n_packed += len(packed)
            while packed:
                if whole is not None and whole.eof:  # one archive after another is an archive
                    whole = zlib.decompressobj(wbits=31)
                chunk = packed if whole is None else whole.decompress(packed, _CHUNK_BYTES)
                n_bytes += len(chunk)
                if n_bytes > MOST_BYTES:
                    raise Unbounded(f"{shown(file)}: larger than {MOST_BYTES >> 30} GiB")
                if n_bytes > max(_SMALL_BYTES, _MOST_TIMES * n_packed):
                    raise Unbounded(f"{shown(file)}: unpacks to more than {_MOST_TIMES} times its size")
                yield chunk
                packed = b"" if whole is None else whole.unconsumed_tail or (whole.unused_data if whole.eof else b"")
    except zlib.error as error:
        raise SchedulerError(f"{shown(file)}: not compressed with gzip: {error}") from error
    if whole is not None and not whole.eof:
        raise _CutOff(f"{shown(file)}: cut off: the end of what was compressed is missing")
