"""`--version`: which kubesched, which releases of Kubernetes, and what its formulas run in."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version

import pytest
from click.testing import CliRunner

from kubesched.cli import cli
from kubesched.cli.kubectl_plugin import cli as plugin
from kubesched.scheduler import kernels


def test_one_line_says_which_release_and_which_of_kubernetes() -> None:
    assert CliRunner().invoke(cli, ["--version"], prog_name="kubesched").output == (
        f"kubesched {version('kubesched')}, equal to kube-scheduler 1.36 and 1.37\n"
    )
    assert CliRunner().invoke(plugin, ["--version"]).output.startswith("kubectl kubesched ")


@pytest.mark.parametrize("words", [["--version", "-v"], ["-v", "--version"]])
def test_more_of_it_says_what_the_formulas_run_in(words: list[str]) -> None:
    lines = CliRunner().invoke(cli, words).output.splitlines()
    assert lines[1] == "compared with: v1.36.4, v1.37.0-rc.1"
    assert lines[2].startswith(f"kernels: {kernels.form}") and f"NumPy {version('numpy')}" in lines[3]


def test_v_alone_is_wrong_usage() -> None:
    done = CliRunner().invoke(cli, ["-v", "why", "a"])
    assert done.exit_code == 2 and "-v goes with --version" in done.output


WITHOUT_A_LIBRARY = (
    "import sys; sys.modules['kubesched.scheduler.kernels._compiled'] = None; from kubesched.cli import main; main()"
)


def run(*words: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != "KUBESCHED_KERNELS"}
    command = [sys.executable, "-c", WITHOUT_A_LIBRARY, *words]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_where_nothing_is_compiled_the_version_says_why() -> None:
    output, _ = run("--version", "-v").communicate(timeout=60)
    assert "\nkernels: numpy (neither a wheel for this platform nor a C compiler was there" in output


def test_where_nothing_is_compiled_a_scheduler_says_so_once_at_debug_level() -> None:
    nowhere = ("--master=http://127.0.0.1:1", "--leader-elect=false", "--secure-port=0", "--emulated-version=1.37")
    with run("run", *nowhere, "-v=4") as scheduler:
        assert scheduler.stdout is not None
        lines = []
        for line in scheduler.stdout:
            lines.append(line)
            if "cannot ask what the API server serves" in line:
                break
        scheduler.kill()
    assert sum("Formulas over all nodes run in NumPy, not compiled" in line for line in lines) == 1
