"""A log of changes and its readers."""

from __future__ import annotations

import pytest

from kubesched.scheduler.cluster.changelog import ChangeLog, Reader


def test_each_reader_is_told_what_is_new_to_it() -> None:
    log: ChangeLog[str] = ChangeLog()
    log.append("a")
    late, early = Reader(log), Reader[str]()
    log.append("b")
    assert early.changed(log) is None, "the first time, everything is new"
    assert (late.is_current(log), late.changed(log), late.is_current(log)) == (False, ["b"], True)
    log.append("c")
    assert early.changed(log) == late.changed(log) == ["c"]
    assert late.changed(log) == []


def test_everything_is_new_where_the_log_cannot_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChangeLog, "longest", 4)
    log: ChangeLog[int] = ChangeLog()
    slow, restarted, other = Reader(log), Reader(log), Reader(log)
    for i in range(5):
        log.append(i)
    assert slow.changed(log) is None, "the oldest entries are forgotten"
    log.append(5)
    assert slow.changed(log) == [5]
    assert log.end == 6
    restarted.changed(log)
    log.restart()
    assert not restarted.is_current(log)
    assert restarted.changed(log) is None, "the log began anew"
    assert restarted.changed(log) == []
    another: ChangeLog[int] = ChangeLog()
    assert other.changed(another) is None, "it is another log"
    assert other.changed(another) == []
    other.forget()
    assert other.changed(another) is None
