"""Regular expressions of users: linear time, Go's words for mistakes, Go's way to count empty matches."""

import time

import pytest

from kubesched.kube.values.regex import RegexError, compile_regex


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("^(a+)+$", "a" * 100_000 + "!"), ("(x+x+)+y", "x" * 100_000), ("(a|a)*b", "a" * 100_000), ("(.*)*=", "a" * 100_000)],
)
def test_no_pattern_explodes(pattern, text):
    start = time.process_time()
    assert not compile_regex(pattern).matches(text)
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("(?=b)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(a{1000}){1000}", "invalid repeat count: `{1000}`"),
        ("a\\", "trailing backslash at end of expression"),
        (r"(?:\pL{500}){2}", "expression too large"),
    ],
)
def test_mistakes_in_go_s_words(pattern, complaint):
    for _ in range(2):  # the second time from memory
        with pytest.raises(RegexError) as raised:
            compile_regex(pattern)
        assert str(raised.value) == f"error parsing regexp: {complaint}"


@pytest.mark.parametrize(
    ("pattern", "text", "limit", "found"),
    [
        ("[0-9]+", "a1b22", -1, ["1", "22"]),
        ("[0-9]+", "a1b22", 1, ["1"]),
        ("[0-9]+", "a1b22", 0, []),
        ("a*", "baac", -1, ["", "aa", ""]),
        ("", "né", -1, ["", "", ""]),
        (".", "né", -1, ["n", "é"]),
    ],
)
def test_find_all(pattern, text, limit, found):
    assert compile_regex(pattern).find_all(text, limit) == found
    assert compile_regex(pattern).find(text) == (found[0] if found else "1")
