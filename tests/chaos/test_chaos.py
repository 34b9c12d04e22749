"""Seeds of the whole system in virtual time: nothing is lost, whatever happens; and the same seed is the same history.

More seeds: `make chaos SEEDS=200`.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.__main__ import main
from chaos.faults import Fault
from chaos.known_bugs import BUGS, PROVOKED_BY
from chaos.run import run
from chaos.shrinking import shrink

N_SEEDS = 24
"""About half a minute of one core. `make chaos` is for more."""

_DIGEST = "from chaos.run import run; print(run('7').history.digest)"


@pytest.mark.parametrize("seed", range(1, N_SEEDS + 1))
def test_seed(seed: int) -> None:
    result = run(str(seed))
    assert not result.violations, f"make chaos REPLAY={seed}"


def test_a_world_without_faults_places_every_pod() -> None:
    result = run("calm", [])
    assert not result.violations
    assert any(" write " in line and " pods " in line for line in result.history.lines)


def test_the_same_seed_gives_the_same_history_in_another_process_under_another_hash_seed() -> None:
    path = os.pathsep.join([*sys.path[:2], str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])
    digests = {
        subprocess.run(
            [sys.executable, "-c", _DIGEST],
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("0", "12345")
    }
    assert digests == {run("7").history.digest}


@pytest.mark.parametrize("name", PROVOKED_BY)
def test_a_bug_that_is_put_back_is_found(name: str) -> None:
    with BUGS[name].put_back():
        assert any(run(str(seed), list(PROVOKED_BY[name])).violations for seed in range(1, 6))


def test_seeds_run_on_several_cores(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "2", "--first", "3", "--workers", "2"]) == 0
    assert capsys.readouterr().out.startswith("2 seeds from 3: 0 failed; 0.")


def test_a_script_shrinks_to_what_makes_it_fail() -> None:
    script = [Fault("drop", float(at)) for at in range(9)]
    asked: list[int] = []

    def fails(part: list[Fault]) -> bool:
        asked.append(len(part))
        return script[2] in part and script[7] in part

    assert shrink("1", script, fails) == [script[2], script[7]]
    assert len(asked) < 30


def test_counts_are_written_into_a_page(tmp_path: Path) -> None:
    page = tmp_path / "testing.md"
    page.write_text("before\n<!-- bugs -->\nold\n<!-- /bugs -->\nbetween\n<!-- run -->\n<!-- /run -->\nafter\n")
    main(["--bug", "garbage-200", "--seeds", "1", "--page", str(page)])
    lines = page.read_text().splitlines()
    assert lines[0] == "before" and lines[-1] == "after" and "old" not in lines
    assert lines[4].startswith("| `garbage-200` | any 200 counts as a binding | ")
