"""`kubesched conformance`: a row a family, and a total."""

from __future__ import annotations

import gzip
from itertools import islice
from pathlib import Path

from click.testing import CliRunner

from kubesched.cli import cli

GOLDEN = Path(__file__).parents[2] / "conformance"


def test_the_table_ends_with_a_total(tmp_path: Path) -> None:
    for family, n_cases in (("config", 2), ("resources", 3)):
        with gzip.open(GOLDEN / f"{family}.jsonl.gz") as file:
            (tmp_path / f"{family}.jsonl").write_bytes(b"".join(islice(file, n_cases)))
    done = CliRunner().invoke(cli, ["conformance", str(tmp_path)])
    assert done.exit_code == 0
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["family", "passed", "failed"],
        ["config", "2", "0"],
        ["resources", "3", "0"],
        ["total", "5", "0"],
    ]
