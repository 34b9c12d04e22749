"""What is read of a process that a bench started."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.simulator.processes import last_line


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("", "it said nothing"),
        ("one\ntwo\n\n", "two"),
        (
            'E1117 17:08:20.049190   27450 run.py:153] "Leaderelection lost" err="leader election lost"\n',
            '"Leaderelection lost"',
        ),
        ("error: no such file: E1117.yaml] \n", "error: no such file: E1117.yaml]"),
    ],
)
def test_the_last_line_of_a_log_comes_without_klogs_header(log: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(log)
    assert last_line(tmp_path / "log").startswith(said)
