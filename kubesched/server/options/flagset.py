"""A flag set that behaves like pflag, the library of kube-scheduler's command line.

In: a table of flags, and the words of a command line. Out: `Parsed`, with the value of every flag and which ones were given.
It takes `--name=value`, `--name value`, `-v5`, `-v=5`, `--bool`, `_` for `-`, and a bare `--`. A list that is given twice
grows. Errors are `UsageError`s with pflag's messages. `usage` prints the flags in sections, wrapped to the terminal.
"""

from __future__ import annotations

import csv
import io
import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubesched.errors import ConfigError, SchedulerError
from kubesched.kube.values import go_quote, quantity
from kubesched.scheduler.config import Duration

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_FIELDS = re.compile(r'("(?:[^"]|"")*"|[^",]*)(,("(?:[^"]|"")*"|[^",]*))*')  # comma-separated, quoted where needed
_MAX_FLOAT32 = 3.4028235677973366e38  # what lies beyond is rounded to infinity
_MIN_WRAP = 24  # columns of help; with less room it gets lines of its own


class UsageError(SchedulerError):
    """A command line that cannot be parsed. The usage text is printed before it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of value: its name in the usage, how text becomes a value, and how a value is shown."""

    name: str
    read: Callable[[str], Any]
    show: Callable[[Any], str] = str
    zeros: tuple[str, ...] = ("",)  # defaults that the usage does not mention
    add: Callable[[Any, Any], Any] | None = None  # how a repeated flag grows; None: the last one wins
    alone: str = ""  # the value of the flag without one
    empty: Any = ""  # the default where the table gives none


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag."""

    name: str
    group: str
    kind: Kind
    default: Any
    help: str
    short: str = ""

    @property
    def shown(self) -> str:
        """Return the flag as error messages name it."""
        return f"-{self.short}, --{self.name}" if self.short else f"--{self.name}"


@dataclass(frozen=True, slots=True)
class Parsed:
    """The values of all flags, which ones were given, and the words that are not flags."""

    values: Mapping[str, Any]
    given: frozenset[str]
    words: tuple[str, ...] = ()
    shown: Mapping[str, str] = field(default_factory=dict)  # every value as text, for the log and for /flagz

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def fields(self, names: Mapping[str, str]) -> dict[str, Any]:
        """Return the given flags as fields of the configuration."""
        return {field: self.values[flag] for flag, field in names.items() if flag in self.given}


def parse(flags: Sequence[Flag], words: Iterable[str]) -> Parsed:
    """Parse a command line; raise UsageError at the first word that is wrong."""
    by_name = {flag.name: flag for flag in flags}
    by_letter = {flag.short: flag for flag in flags if flag.short}
    reader = _Reader(by_name, by_letter)
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            reader.words += left
            break
        if word.startswith("--"):
            reader.read_long(word, left)
        elif word.startswith("-") and len(word) > 1:
            reader.read_short(word, left)
        else:
            reader.words.append(word)
    values = {flag.name: reader.found.get(flag.name, flag.default) for flag in flags}
    shown = {flag.name: flag.kind.show(values[flag.name]) for flag in flags}
    return Parsed(values, frozenset(reader.found), tuple(reader.words), shown)


class _Reader:
    """Reads words one by one."""

    def __init__(self, by_name: Mapping[str, Flag], by_letter: Mapping[str, Flag]) -> None:
        self.by_name = by_name
        self.by_letter = by_letter
        self.found: dict[str, Any] = {}
        self.words: list[str] = []

    def read_long(self, word: str, left: list[str]) -> None:
        """Read `--name=value`, `--name value` or `--name`."""
        name, equals, value = word[2:].partition("=")
        if not name or name.startswith("-"):
            raise UsageError(f"bad flag syntax: {word}")
        flag = self.by_name.get(name.replace("_", "-"))
        if flag is None:
            raise UsageError(f"unknown flag: --{name}")
        if not equals:
            value = self._next(flag, left, f"flag needs an argument: --{name}")
        self._set(flag, value)

    def read_short(self, word: str, left: list[str]) -> None:
        """Read letters: each is a flag without a value, until one takes the rest or the next word as its value."""
        letters = word[1:]
        while letters:
            letter, rest = letters[0], letters[1:]
            flag = self.by_letter.get(letter)
            if flag is None:
                raise UsageError(f"unknown shorthand flag: '{letter}' in -{letters}")
            if rest.startswith("=") and len(rest) > 1:
                self._set(flag, rest[1:])
                return
            if flag.kind.alone:
                self._set(flag, flag.kind.alone)
                letters = rest
                continue
            value = rest or self._next(flag, left, f"flag needs an argument: '{letter}' in -{letters}")
            self._set(flag, value)
            return

    def _next(self, flag: Flag, left: list[str], missing: str) -> str:
        """Return the value of a flag that comes without one: its own, or the next word."""
        if flag.kind.alone:
            return flag.kind.alone
        if not left:
            raise UsageError(missing)
        return left.pop(0)

    def _set(self, flag: Flag, text: str) -> None:
        """Set a flag from text; a list that was set before grows."""
        try:
            value = flag.kind.read(text)
        except (ValueError, ConfigError) as error:
            detail = f"invalid argument {go_quote(text)} for {go_quote(flag.shown)} flag: {error}"
            raise UsageError(detail) from error
        if flag.kind.add is not None and flag.name in self.found:
            value = flag.kind.add(self.found[flag.name], value)
        self.found[flag.name] = value


# --- kinds ------------------------------------------------------------------------------------------------------------


def _boolean(text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise ValueError(f"strconv.ParseBool: parsing {go_quote(text)}: invalid syntax")
    return text in _TRUE


def _integer(bits: int) -> Callable[[str], int]:
    """Return a reader of integers of so many bits."""

    def read(text: str) -> int:
        value = _any_base(text)
        if value is None:
            raise ValueError(f"strconv.ParseInt: parsing {go_quote(text)}: invalid syntax")
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise ValueError(f"strconv.ParseInt: parsing {go_quote(text)}: value out of range")
        return value

    return read


def _any_base(text: str) -> int | None:
    """Return an integer in Go's notation: 0x, 0o, 0b, and octal for a leading 0."""
    match = re.fullmatch(r"([+-]?)(0[xX]_?[0-9a-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]*|[1-9][0-9_]*)", text)
    if not match or text.endswith("_") or "__" in text:
        return None
    digits = match[2].replace("_", "").lower()
    if len(digits) > 1 and digits[0] == "0" and digits[1] not in "xbo":
        digits = f"0o{digits[1:]}"
    return int(digits, 0) * (-1 if match[1] == "-" else 1)


def _unsigned(text: str) -> int:
    if not re.fullmatch(r"[0-9]+", text):
        raise ValueError(f"strconv.ParseUint: parsing {go_quote(text)}: invalid syntax")
    if int(text) >= 1 << 31:
        raise ValueError(f"strconv.ParseUint: parsing {go_quote(text)}: value out of range")
    return int(text)


def _float(text: str) -> float:
    """Return a number that fits in a float32, as --kube-api-qps is one."""
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        raise ValueError(f"strconv.ParseFloat: parsing {go_quote(text)}: invalid syntax")
    if abs(value := float(text)) > _MAX_FLOAT32:
        raise ValueError(f"strconv.ParseFloat: parsing {go_quote(text)}: value out of range")
    return value


def _address(text: str) -> str:
    """Return an IP address; an empty text means all interfaces."""
    if not text:
        return ""  # all interfaces, as 0.0.0.0
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError as error:
        raise ValueError(f"failed to parse IP: {go_quote(text)}") from error


def _strings(text: str) -> tuple[str, ...]:
    """Return the fields of a line of CSV."""
    if not text:
        return ()
    if not _FIELDS.fullmatch(text):
        raise ValueError(f'parse error on line 1, column {text.index(chr(34)) + 1}: bare " in non-quoted-field')
    return tuple(next(csv.reader([text])))


def _show_strings(values: Sequence[str]) -> str:
    """Return texts as pflag shows them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return f"[{line.getvalue() if values else ''}]"


def _integers(text: str) -> tuple[int, ...]:
    return tuple(_integer(32)(part) for part in text.split(","))


def _pairs(text: str) -> dict[str, str]:
    """Return `key=value` fields as a map. With a single `=` the value may contain commas."""
    fields: Sequence[str] = (text.strip('"'),) if text.count("=") == 1 else _strings(text)
    found = {}
    for pair in fields or (text,):
        key, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"{pair} must be formatted as key=value")
        found[key] = value
    return found


def _show_pairs(values: Mapping[str, str]) -> str:
    return _show_strings([f"{key}={value}" for key, value in values.items()])


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A certificate with its key, and the server names it is for: without any, those in the certificate."""

    cert_file: str
    key_file: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.cert_file},{self.key_file}" + (f":{','.join(self.names)}" if self.names else "")


def _certificate_pair(text: str) -> tuple[CertificatePair, ...]:
    """Return the pair of `cert,key` or `cert,key:name,*.name`."""
    files, colon, names = (part.strip() for part in text.partition(":"))
    if colon and not names:
        raise ValueError("empty names list is not allowed")
    if files.count(",") != 1:
        raise ValueError("expected comma separated certificate and key file paths")
    certificate, key = (part.strip() for part in files.split(","))
    listed = tuple(name.strip() for name in names.split(",")) if names else ()
    return (CertificatePair(certificate, key, listed),)


def _modules(text: str) -> tuple[tuple[str, int], ...]:
    """Return patterns and levels of `pattern=N,...`."""
    found = []
    for item in filter(None, text.split(",")):
        pattern, _, level = item.partition("=")
        if item.count("=") != 1 or not pattern or not level:
            raise ValueError(f"{go_quote(item)} does not have the pattern=N format")
        try:
            found.append((pattern, _unsigned(level)))
        except ValueError as error:
            raise ValueError(f"parsing verbosity in {go_quote(item)}: {error}") from error
    return tuple(found)


def _quantity(text: str) -> str:
    try:
        quantity.parse(text)
    except SchedulerError as error:
        pattern = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
        raise ValueError(f"quantities must match the regular expression '{pattern}'") from error
    return quantity.canonical(text)


def _version(text: str) -> str:
    """Return true, false, raw, or a version to report."""
    if text == "raw" or text.startswith("v"):
        return text
    return "true" if _boolean(text) else "false"


def _join_tuples(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    return old + new


def _word(text: str) -> tuple[str, ...]:
    return (text,)


STRING = Kind("string", str)
STRINGS = Kind("strings", _strings, _show_strings, ("[]",), _join_tuples, empty=())
VERSION = Kind("version", _version, zeros=("false",), alone="true")
# The keys are the words of the flag tables; the names in the usage are pflag's. A quirk of pflag is kept: for some kinds its
# usage mentions even an empty default. Those have no `zeros`.
KINDS = {
    "string": STRING,
    "bool": Kind("", _boolean, lambda value: "true" if value else "false", ("false",), alone="true"),
    "int": Kind("int", _integer(64), zeros=("0",)),
    "int32": Kind("int32", _integer(32), zeros=("0",)),
    "float32": Kind("float32", _float, lambda value: f"{value:g}", ("0",)),
    "duration": Kind("duration", Duration.parse, zeros=("0s",)),
    "ip": Kind("ip", _address),
    "strings": STRINGS,
    "words": Kind("stringArray", _word, _show_strings, ("[]",), _join_tuples, empty=()),  # repeated, commas and all
    "int32s": Kind("int32Slice", _integers, lambda values: f"[{','.join(map(str, values))}]", add=_join_tuples, empty=()),
    "pairs": Kind("stringToString", _pairs, _show_pairs, add=lambda old, new: {**old, **new}, empty={}),
    "certificates": Kind(
        "namedCertKey", _certificate_pair, lambda pairs: f"[{';'.join(map(str, pairs))}]", add=_join_tuples, empty=()
    ),
    "level": Kind("Level", _unsigned, zeros=("0",)),
    "modules": Kind(
        "pattern=N,...",
        _modules,
        lambda items: ",".join(f"{name}={level}" for name, level in items),
        add=_join_tuples,
        empty=(),
    ),
    "quantity": Kind("quantity", _quantity, zeros=("0",)),
    "version": VERSION,
    "gates": Kind("colonSeparatedMultimapStringString", _word, ",".join, add=_join_tuples, empty=()),
}


# --- tables -----------------------------------------------------------------------------------------------------------


def read_flags(table: str, **texts: str) -> tuple[Flag, ...]:
    """Return the flags of a table, in its order. `texts` fill the `{words}` in braces of the help.

        [logs]                                          the group of the flags below
        v(v) level =0: How much to log.                 name, letter, kind, default, help
        log-flush-frequency duration =5s: The longest   a help goes on in lines
          time between two flushes of the log.          that are indented

    A default is written as on a command line, and read by the flag's kind.
    """
    flags, group = [], ""
    for line in re.sub(r"\n +", " ", table.strip()).splitlines():
        if line.startswith("["):
            group = line.strip("[]")
            continue
        head, _, text = line.partition(": ")
        label, kind_name, *default = head.split()
        name, _, letter = label.rstrip(")").partition("(")
        kind = KINDS[kind_name]
        value = kind.read(default[0][1:]) if default else kind.empty
        flags.append(Flag(name, group, kind, value, text.format(**texts), letter))
    return tuple(flags)


# --- usage ------------------------------------------------------------------------------------------------------------


def usage(flags: Sequence[Flag], command: str, columns: int = 0) -> str:
    """Return the usage text: flags by group, sorted by name, wrapped to `columns` (0: not at all)."""
    parts = [f"Usage:\n  {command} [flags]\n"]
    for group in dict.fromkeys(flag.group for flag in flags):
        members = sorted((flag for flag in flags if flag.group == group), key=lambda flag: flag.name)
        parts.append(f"\n{group[:1].upper()}{group[1:]} flags:\n\n{_section(members, columns)}")
    return "".join(parts)


def _section(flags: Sequence[Flag], columns: int) -> str:
    """Return the lines of one group, with the help in one column."""
    left = [_left(flag) for flag in flags]
    width = max(len(text) for text in left)
    lines = []
    for flag, text in zip(flags, left, strict=True):
        lines.append(f"{text}{' ' * (width - len(text))}   {_wrap(_right(flag), width + 3, columns)}\n")
    return "".join(lines)


def _left(flag: Flag) -> str:
    """Return the name of a flag with its type, as pflag writes it."""
    text = f"  -{flag.short}, --{flag.name}" if flag.short else f"      --{flag.name}"
    if flag.kind.name:
        text += f" {flag.kind.name}"
    return f"{text}[={flag.kind.alone}]" if flag.kind is VERSION else text


def _right(flag: Flag) -> str:
    """Return the help of a flag with its default."""
    default = flag.kind.show(flag.default)
    if default in flag.kind.zeros:
        return flag.help
    return f"{flag.help} (default {go_quote(default) if flag.kind is STRING else default})"


def _wrap(text: str, indent: int, columns: int) -> str:
    """Wrap a help text. If too few columns are left for it, it gets lines of its own."""
    room = columns - indent
    lead = ""
    if columns and room < _MIN_WRAP:
        indent = 16
        room, lead = columns - indent, "\n" + " " * indent
    if room < _MIN_WRAP:
        return text.replace("\n", "\n" + " " * indent)
    lines = []
    for paragraph in text.split("\n"):
        words, line = paragraph.split(" "), ""
        for word in words:
            if line and len(line) + 1 + len(word) > room:
                lines.append(line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        lines.append(line)
    return lead + ("\n" + " " * indent).join(lines)
