"""Logs: what a line looks like, and who is heard at which verbosity."""

from __future__ import annotations

import io
import json
import logging
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from kubesched.telemetry import logs
from kubesched.telemetry.logs import logger


@dataclass(frozen=True)
class Span:
    seconds: float = 5.0


@dataclass(frozen=True)
class Settings:
    format: str = "text"
    flush_frequency: Span = field(default_factory=Span)
    verbosity: int = 0
    vmodule: tuple[tuple[str, int], ...] = ()
    split_stream: bool = False
    info_buffer_bytes: int = 0


@dataclass
class Streams:
    out: io.StringIO = field(default_factory=io.StringIO)
    err: io.StringIO = field(default_factory=io.StringIO)

    def configure(self, **settings: object) -> None:
        logs.configure(Settings(**settings), stdout=self.out, stderr=self.err)  # type: ignore[arg-type]


@pytest.fixture
def streams() -> Iterator[Streams]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield Streams()
    logs.shut_down()
    Streams().configure()
    root.handlers[:] = before
    root.setLevel(level)


log = logger("kubesched.telemetry.test_words")

TEXTS = [
    ("numbers and truths are bare", {"n": 3, "f": 0.5, "yes": True, "none": None}, "n=3 f=0.5 yes=true none=null"),
    ("texts are quoted", {"pod": "ns/a"}, 'pod="ns/a"'),
    ("quotes in texts are escaped", {"q": 'a "b" \\c'}, r'q="a \"b\" \\c"'),
    ("lists are JSON", {"names": ["a", "b"]}, 'names=["a","b"]'),
    ("sets have an order", {"names": {"b", "a"}}, 'names=["a","b"]'),
    ("several lines are indented", {"text": "one\ntwo"}, "text=<\n\tone\n\ttwo\n >"),
    ("errors say what they say", {"err": ValueError("no such node")}, 'err="no such node"'),
]


@pytest.mark.parametrize(("case", "values", "shown"), TEXTS, ids=[case[0] for case in TEXTS])
def test_values_look_as_klog_prints_them(case: str, values: dict[str, object], shown: str, streams: Streams) -> None:
    streams.configure()
    log.info("A message", **values)
    assert streams.err.getvalue().split("] ", 1)[1] == f'"A message" {shown}\n'


def test_a_line_begins_as_klogs_lines_do(streams: Streams) -> None:
    streams.configure()
    log.info("Hello")
    log.warning("Careful")
    log.error("Failed", err=ValueError("x"), pod="ns/a")
    pattern = r'([IWE])\d{4} \d\d:\d\d:\d\d\.\d{6} {1,6}\d+ test_logs\.py:\d+\] (".*)'
    lines = [re.fullmatch(pattern, line) for line in streams.err.getvalue().splitlines()]
    assert [line.groups() if line else None for line in lines] == [
        ("I", '"Hello"'),
        ("W", '"Careful"'),
        ("E", '"Failed" err="x" pod="ns/a"'),
    ]


def test_the_standard_librarys_loggers_are_served(streams: Streams) -> None:
    plain = logging.getLogger("kubesched.telemetry.test_plain")
    streams.configure()
    plain.info("lease %s is held", "x")
    plain.debug("not shown")
    try:
        raise ValueError("broken")
    except ValueError:
        plain.exception("request failed")
    text = streams.err.getvalue()
    assert "] lease x is held\n" in text
    assert "not shown" not in text
    assert '] request failed err="broken" stacktrace=<\n\tTraceback' in text
    logs.set_verbosity(4)
    plain.debug("shown now")
    assert "] shown now\n" in streams.err.getvalue()


def test_libraries_are_heard_from_warnings_on(streams: Streams) -> None:
    foreign = logging.getLogger("some.library")
    streams.configure(verbosity=7)
    foreign.info("chatter")
    foreign.warning("trouble")
    assert "chatter" not in streams.err.getvalue()
    assert "trouble" in streams.err.getvalue()
    logs.set_verbosity(8)
    foreign.info("chatter")
    assert "chatter" in streams.err.getvalue()


def test_verbosity_decides_who_is_heard_and_changes_at_once(streams: Streams) -> None:
    streams.configure(verbosity=2)
    for level in range(6):
        log.v(level).info("Level", n=level)
    assert re.findall(r"n=(\d)", streams.err.getvalue()) == ["0", "1", "2"]
    assert log.v(2)
    assert not log.v(3)
    logs.set_verbosity(5)
    log.v(5).info("Level", n=9)
    assert "n=9" in streams.err.getvalue()
    assert logs.verbosity() == 5
    assert log.level == 5
    logs.set_verbosity(0)
    assert not log.v(1)


def test_the_line_number_is_the_callers_for_verbose_lines_too(streams: Streams) -> None:
    streams.configure(verbosity=1)
    log.v(1).info("Here")
    assert " test_logs.py:" in streams.err.getvalue()


MODULES = [
    ("a file's name", "test_words=4", 4),
    ("a pattern", "test_w*=3", 3),
    ("the first that fits", "test_*=2,test_words=9", 2),
    ("a path", "kubesched/telemetry/*=6", 6),
    ("another file", "scheduling=6", 1),
]


@pytest.mark.parametrize(("case", "flag", "level"), MODULES, ids=[case[0] for case in MODULES])
def test_single_files_can_speak_more(case: str, flag: str, level: int, streams: Streams) -> None:
    pairs = tuple((name, int(n)) for name, n in (item.split("=") for item in flag.split(",")))
    streams.configure(verbosity=1, vmodule=pairs)
    assert log.level == level
    assert logger("kubesched.telemetry.test_words") is log


def test_a_pattern_reaches_plain_loggers_and_lets_go_of_them(streams: Streams) -> None:
    plain = logging.getLogger("kubesched.telemetry.test_plain")
    streams.configure(vmodule=(("test_plain", 4),))
    assert plain.isEnabledFor(logging.DEBUG)
    streams.configure()
    assert not plain.isEnabledFor(logging.DEBUG)
    assert plain.isEnabledFor(logging.INFO)


def test_json_lines_have_the_references_keys(streams: Streams) -> None:
    streams.configure(format="json", verbosity=3)
    log.v(3).info('Pod "x" waits', pod="ns/a", n=2)
    log.named("Filter").named("NodeName").error("Failed", err=ValueError("why"), names={"b", "a"})
    first, second = (json.loads(line) for line in streams.err.getvalue().splitlines())
    assert list(first) == ["ts", "caller", "msg", "v", "pod", "n"]
    assert first["msg"] == 'Pod "x" waits'
    assert (first["v"], first["pod"], first["n"]) == (3, "ns/a", 2)
    assert first["ts"] > 1_600_000_000_000
    assert list(second) == ["ts", "logger", "caller", "msg", "err", "names"]
    assert (second["logger"], second["err"]) == ("Filter.NodeName", "why")


def test_flags_are_said_from_verbosity_one_on(streams: Streams) -> None:
    streams.configure()
    logs.say_flags({"v": "1", "config": ""})
    assert streams.err.getvalue() == ""
    logs.set_verbosity(1)
    logs.say_flags({"v": "1", "config": ""})
    lines = [line.split("] ", 1)[1] for line in streams.err.getvalue().splitlines()]
    assert lines == ['FLAG: --config=""', 'FLAG: --v="1"']


def test_a_named_logger_says_its_name(streams: Streams) -> None:
    streams.configure()
    log.named("Filter.NodeName").info("Hello", pod="a")
    assert '"Hello" logger="Filter.NodeName" pod="a"' in streams.err.getvalue()


@pytest.mark.parametrize(("is_contextual", "line"), [(True, '"Hello" logger="Filter" pod="a"'), (False, '"Hello" pod="a"')])
def test_names_are_left_out_where_logging_is_not_contextual(streams: Streams, is_contextual: bool, line: str) -> None:
    streams.configure()
    try:
        logs.set_contextual(is_contextual)
        log.named("Filter").info("Hello", pod="a")
    finally:
        logs.set_contextual(True)
    assert line in streams.err.getvalue()


def test_split_streams_send_errors_one_way_and_the_rest_the_other(streams: Streams) -> None:
    streams.configure(split_stream=True)
    log.info("Fine")
    log.warning("Odd")
    log.error("Bad")
    assert '"Fine"' in streams.out.getvalue()
    assert '"Odd"' in streams.out.getvalue()
    assert '"Bad"' not in streams.out.getvalue()
    assert streams.err.getvalue().count("\n") == 1


def test_info_lines_are_held_back_until_they_are_many(streams: Streams) -> None:
    streams.configure(split_stream=True, info_buffer_bytes=200)
    log.info("First")
    assert streams.out.getvalue() == ""
    log.info("Second", text="x" * 200)
    assert streams.out.getvalue().count("\n") == 2
    log.info("Third")
    logs.flush()
    assert '"Third"' in streams.out.getvalue()


def test_what_is_held_back_is_written_from_time_to_time(streams: Streams) -> None:
    written = threading.Event()

    class Told(io.StringIO):
        def write(self, text: str) -> int:
            written.set()
            return super().write(text)

    streams.out = Told()
    streams.configure(split_stream=True, info_buffer_bytes=1 << 20, flush_frequency=Span(0.01))
    log.info("Soon")
    assert written.wait(5.0)
    assert '"Soon"' in streams.out.getvalue()
