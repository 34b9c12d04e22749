"""Regular expressions of users: RE2's, whose time grows with the text and never explodes.

In: patterns of objects (CEL's `matches`, `pattern` in the schema of a custom resource). Out: matches, or a `RegexError` in the
words of Go's regexp package. The extra `dra` installs RE2. Python's `re` is never used for them: it backtracks, so `^(a+)+$`
and thirty letters would stop the process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

_MEMORY = 2 << 20  # bytes for one pattern's program and its cache of states, so that the patterns kept stay below 128 MB
_KEPT = 64

_GO_WORDS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": "expression too large",
}
"""What RE2 calls a mistake, and what Go's package calls it; all others have the same name in both."""


_LITERAL = re.compile(r"\\Q.*?(?:\\E|$)", re.DOTALL)
_ANY_BYTE = re.compile(r"(?:^|[^\\])(?:\\\\)*\\C")
"""RE2 has this escape, and Go has not."""


class RegexError(ValueError):
    """A text that is not a regular expression."""


class Regex:
    """A compiled pattern."""

    def __init__(self, pattern: str) -> None:
        try:
            import re2
        except ImportError as error:
            raise RegexError("regular expressions need: pip install 'kubesched[dra]'") from error

        if _ANY_BYTE.search(_LITERAL.sub("", pattern)):
            raise RegexError("invalid escape sequence: `\\C`")
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.max_mem = _MEMORY
        try:
            self._program: Any = re2.compile(pattern, options)
        except re2.error as error:
            raise RegexError(_in_go_words(error.args[0])) from None
        finally:
            re2.purge()  # the library would keep 128 more of them

    @property
    def size(self) -> int:
        """Return how many states the pattern has."""
        return int(self._program.programsize)

    def steps(self, text: str) -> int:
        """Return how many steps a search through a text takes at most."""
        return self.size * (len(text) + 1)

    def matches(self, text: str) -> bool:
        """Return whether the pattern is found anywhere in a text."""
        return self._program.search(_encoded(text)) is not None

    def find(self, text: str) -> str:
        """Return the first match, or an empty text."""
        return next(self._found(text), "")

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """Return all matches, or the first `limit` of them."""
        found = self._found(text)
        return list(found) if limit < 0 else [match for _, match in zip(range(limit), found, strict=False)]

    def _found(self, text: str) -> Iterator[str]:
        last = -1
        for match in self._program.finditer(_encoded(text)):
            start, end = match.span()
            if start == end and (start == last or _is_inside_a_letter(match.string, start)):
                continue  # Go does not count an empty match right after another match
            last = end
            yield match[0].decode()


@lru_cache(maxsize=_KEPT)
def _compiled(pattern: str) -> Regex | RegexError:
    try:
        return Regex(pattern)
    except RegexError as error:
        return error


def compile_regex(pattern: str) -> Regex:
    """Return a pattern ready for use; raise a `RegexError` if it is none."""
    known = _compiled(pattern)
    if isinstance(known, RegexError):
        raise known.with_traceback(None)
    return known


def _encoded(text: str) -> bytes:
    return text.encode(errors="replace")


def _is_inside_a_letter(text: bytes, at: int) -> bool:
    return at < len(text) and text[at] & 0xC0 == 0x80


def _in_go_words(complaint: bytes | str) -> str:
    text = complaint.decode(errors="replace") if isinstance(complaint, bytes) else complaint
    kind, colon, where = text.partition(": ")
    return f"error parsing regexp: {_GO_WORDS.get(kind, kind)}" + (f": `{where}`" if colon else "")
