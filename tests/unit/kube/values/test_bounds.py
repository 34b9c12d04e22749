"""Texts that stand for more than they say are refused in one line, and in no time."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kubesched.errors import ConfigError, SchedulerError
from kubesched.kube.api import codec
from kubesched.kube.values import bounds
from kubesched.kube.values.bounds import Unbounded, check_yaml, lines_of, yaml_document
from kubesched.scheduler.config.documents.reading import read_json
from kubesched.scheduler.config.documents.yamltext import read_yaml

LAUGHS = "a0: &a0 [lol]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
BOMBS = [
    ("a billion laughs", LAUGHS, "excessive aliasing"),
    ("a long text, many times", f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 5000)}]", "excessive aliasing"),
    ("an anchor inside of itself", "a: &a [*a, *a]", "contains itself"),
    ("brackets", "[" * 100_000, "nested deeper than 500"),
    ("braces", "{a: " * 100_000, "nested deeper than 500"),
    ("dashes", "- " * 100_000 + "a", "nested deeper than 500"),
    ("a long number", f"a: {'9' * 200_000}", "a number of 200000 digits"),
    ("a long number by sixties", f"a: 1{':1' * 100_000}", "a number of 200001 digits"),
    ("a bomb in the second document", "a: 1\n---\n" + LAUGHS, "excessive aliasing"),
]
HARMLESS = [
    ("an anchor used a few times", "a: &a {b: 1}\nc: *a\nd: [*a, *a]"),
    ("merged maps", "base: &base {a: 1}\nx: {<<: *base, b: 2}"),
    ("an anchor that is set again", "a: &a [1]\nb: *a\nc: &a [2]\nd: *a"),
    ("a long text", f"a: {'x' * 100_000}"),
    ("a long list", "- a\n" * 20_000),
    ("an alias to nothing", "a: *b"),
    ("no YAML at all", "a: ]["),
]


@pytest.mark.parametrize(("case", "text", "words"), BOMBS, ids=[case[0] for case in BOMBS])
def test_a_bomb_is_refused_in_one_line(case: str, text: str, words: str) -> None:
    began = time.process_time()
    for read in (check_yaml, lambda text: check_yaml(text.encode())):
        with pytest.raises(Unbounded, match=words) as caught:
            read(text)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 200
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize(("case", "text"), HARMLESS, ids=[case[0] for case in HARMLESS])
def test_what_people_write_passes(case: str, text: str) -> None:
    check_yaml(text)


def test_the_configuration_reader_checks() -> None:
    with pytest.raises(Unbounded):
        read_yaml(LAUGHS)
    assert len(str(read_yaml("a: &a {b: 1}\nc: *a")[0])) > 0


JSON = [
    ("deep JSON as a configuration", read_json, "[" * 100_000),
    ("a long number in a configuration", read_json, f'{{"a": {"9" * 200_000}}}'),
    ("deep JSON as an object", codec.decode_json, "[" * 100_000),
    ("a long number in an object", codec.decode_json, f'{{"a": {"9" * 200_000}}}'),
]


@pytest.mark.parametrize(("case", "read", "text"), JSON, ids=[case[0] for case in JSON])
def test_json_without_end_is_refused_in_one_line(case: str, read: Callable[[str], object], text: str) -> None:
    with pytest.raises(SchedulerError) as caught:
        read(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_lines_are_read_from_plain_and_packed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "_CHUNK_BYTES", 7)
    content = b"first\n\nthe third, which is longer\nno end"
    plain, packed, two = tmp_path / "a", tmp_path / "a.gz", tmp_path / "b.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    two.write_bytes(gzip.compress(content[:9]) + gzip.compress(content[9:]))
    for file in (plain, packed, two):
        assert list(lines_of(file)) == content.split(b"\n")
        assert list(lines_of(file, may_be_cut_off=True)) == content.split(b"\n")[:-1]


def test_a_packed_file_that_is_cut_off_is_refused_unless_its_writer_may_have_been_killed(tmp_path: Path) -> None:
    file = tmp_path / "a.gz"
    file.write_bytes(gzip.compress(b"".join(b"%d\n" % i for i in range(10_000)))[:-2000])
    with pytest.raises(SchedulerError, match="cut off"):
        list(lines_of(file))
    assert list(lines_of(file, may_be_cut_off=True))[:2] == [b"0", b"1"]


@pytest.mark.parametrize("packed", [b"x" * 1000, b"\n" * 1000], ids=["one line without end", "lines without end"])
def test_a_file_that_unpacks_without_end_is_refused(packed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "LONGEST_LINE_BYTES", 1 << 16)
    monkeypatch.setattr(bounds, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(bounds, "_CHUNK_BYTES", 1 << 12)
    file = tmp_path / "bomb.gz"
    file.write_bytes(gzip.compress(packed * 10_000))
    with pytest.raises(Unbounded):
        for _ in lines_of(file):
            pass


@pytest.mark.parametrize(
    "text", ["!!bool perhaps", "!!int x", "!!int ''", "!!timestamp x", "!!float x", "!!python/name:os.system", "a: ]["]
)
def test_what_is_no_yaml_is_our_own_error(text: str) -> None:
    with pytest.raises(ConfigError, match="not YAML: "):
        yaml_document(text)


def test_a_date_is_a_text_and_a_document_is_one() -> None:
    assert yaml_document("at: 2020-99-99") == {"at": "2020-99-99"}
    assert yaml_document("# nothing") is None
    with pytest.raises(ConfigError, match="one document is wanted, and 2 were found"):
        yaml_document("a: 1\n---\nb: 2")
