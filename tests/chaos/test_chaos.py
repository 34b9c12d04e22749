"""Seeds of the whole system in virtual time: nothing is lost, whatever happens; and the same seed is the same history.

More seeds: `make chaos SEEDS=200`.
"""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.__main__ import main
from chaos.faults import KINDS, Fault, draw
from chaos.known_bugs import BUGS, PROVOKED_BY
from chaos.processes import ProcessLoop
from chaos.run import run
from chaos.scene import Scene, scene_of
from chaos.shrinking import shrink

N_SEEDS, AT_A_TIME = 200, 10
"""What `make chaos SEEDS=200` runs, about half a minute of one core."""

FOUND = ("8131", "20799", "21968", "22296", "22614", "22838", "31248", "31987", "42375", "51396", "64508", "84205", "60007860")
"""Seeds that found something once. Histories shift, so the tests of what was mended stand beside the code that was."""

WAITS = "30"
"""A seed in which a pod waits in the end: one of its gang is missing."""
_ALIKE = ("7", "12", "13", "30")
_DIGESTS = f"""
import random, time
late = random.Random()
def stutter(clock):
    return lambda: clock() + late.choice((0.0, 0.0, 1.0, 60.0))
time.perf_counter, time.monotonic, time.time = map(stutter, (time.perf_counter, time.monotonic, time.time))
from chaos.run import run
print(*(run(seed).history.digest for seed in {_ALIKE}))
"""


@pytest.mark.parametrize("first", range(1, N_SEEDS + 1, AT_A_TIME))
def test_seeds(first: int) -> None:
    for seed in range(first, first + AT_A_TIME):
        assert not run(str(seed)).violations, f"make chaos REPLAY={seed}"


@pytest.mark.parametrize("seed", FOUND)
def test_seeds_that_found_something_once(seed: str) -> None:
    assert not run(seed).violations


def test_a_world_without_faults_places_every_pod() -> None:
    result = run("calm", [])
    assert not result.violations
    assert any(" write " in line and " pods " in line for line in result.history.lines)


def test_the_same_seed_gives_the_same_history_in_another_process_at_another_pace_under_another_hash_seed() -> None:
    path = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])
    hash_seed = "0" if os.environ.get("PYTHONHASHSEED") != "0" else "12345"
    told = subprocess.run(
        [sys.executable, "-c", _DIGESTS],
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == [run(seed).history.digest for seed in _ALIKE]


def test_seeds_differ_in_everything_that_a_scene_has() -> None:
    scenes = [scene_of(str(seed)) for seed in range(1, N_SEEDS + 1)]
    kinds = {fault.kind for scene in scenes for fault in draw(scene)}
    assert kinds == set(KINDS)
    assert {scene.n_schedulers for scene in scenes} == {1, 2, 3}
    assert {scene.extender for scene in scenes} == {"", "looks", "binds"}
    assert {(scene.has_gangs, scene.has_liar) for scene in scenes} == {(a, b) for a in (True, False) for b in (True, False)}


def test_nothing_of_a_run_is_left_in_memory() -> None:
    run("1")
    gc.collect()
    assert not [obj for obj in gc.get_objects() if isinstance(obj, ProcessLoop)]


def test_a_process_that_only_counts_ends_without_a_word_about_what_was_under_way() -> None:
    path = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])
    counting = [sys.executable, "-c", "from chaos.run import outcome; outcome('7')"]
    told = subprocess.run(counting, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    assert told.stderr == ""


@pytest.mark.parametrize("name", PROVOKED_BY)
def test_a_bug_that_is_put_back_is_found(name: str) -> None:
    script = list(PROVOKED_BY[name])
    extender = "binds" if script[0].kind == "extender" else ""
    scenes = [Scene(str(seed), 2, 30.0, extender) for seed in range(1, 6)]
    with BUGS[name].put_back():
        assert any(run(scene.seed, script, scene).violations for scene in scenes)
    assert not run("1", script, scenes[0]).violations


def test_seeds_run_on_several_cores(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "2", "--first", "3", "--workers", "2"]) == 0
    assert capsys.readouterr().out.startswith("2 seeds from 3: 0 failed; 0.")


def test_a_replay_tells_what_was_logged_and_why_pods_wait(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--replay", WAITS]) == 0
    told = capfd.readouterr().out
    file = Path(told.partition("# the cluster in the end: ")[2].partition(",")[0])
    file.unlink()
    assert " log kubesched." in told
    assert "$ kubesched why default/" in told and "\nasks for " in told


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
    rows = "| `no-fence` | then | 19 |\n| `garbage-200` | then | 7 |\n| `gone` | none any more | 1 |\n"
    page.write_text(f"before\n<!-- bugs -->\n{rows}<!-- /bugs -->\nbetween\n<!-- run -->\n<!-- /run -->\nafter\n")
    main(["--bug", "garbage-200", "--seeds", "1", "--page", str(page)])
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "before" and lines[-1] == "after"
    assert lines[4] == "| `no-fence` | the lease is not looked at again before a write | 19 |"
    assert lines[5] == "| `garbage-200` | any 200 counts as a binding | not by 1 |"
    assert lines[6] == "<!-- /bugs -->"
