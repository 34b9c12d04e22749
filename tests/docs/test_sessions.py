"""Every command that a page shows is run, and prints what the page says."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import performance_tables
import pytest
import yaml
from demos import Running, running
from page_blocks import PAGES, ROOT, Block, blocks_of, inline_commands, prepare, same, sessions_in, steps_of
from page_shell import run, run_to_the_end, run_until

from kubesched.cli import cli
from kubesched.server.options.usage import ALL_FLAGS
from kubesched.tools.snapshots.sources import Policy

ALL_BLOCKS = [block for page in PAGES for block in blocks_of(page)]
WITH_COMMANDS = sorted({ROOT / block.page for block in ALL_BLOCKS if block.has_commands})

# What cannot run here, by how it begins, and why. `make` is asked whether it has the target, our own program for its flags.
NOT_RUN = {
    "docker ": "there is no daemon",
    "kind ": "needs docker",
    "helm ": "there is no helm; tests/unit/test_deploy.py renders the chart",
    "git clone ": "the address is the reader's",
    "make ": "installs from an index",
    ". .venv/bin/activate": "`make run` makes it",
    "python tools/release_changes.py ": "needs a clone of Kubernetes; unit/tools/test_release_changes.py makes a small one",
    "kubectl get --raw ": "needs a scheduler that is a pod",
    "kubesched why team-a/web-0 --feature-gates @": "as above; unit/tools/snapshots/test_running_gates.py writes it",
    "tar -C ~/bin ": "the archive is what `make kubectl-plugin` builds",
    "kubesched bench perf kubernetes/": "needs a checkout of Kubernetes; tests/e2e/test_bench_perf.py runs files of its own",
    "curl localhost:10270/": "the service ended with its command; tests/e2e/test_serve.py asks one",
    "kubectl -n kube-system port-forward ": "no kubelet has started the pod",
    "export KUBESCHED_SERVER=": "the same; tests/unit/test_kubectl_plugin.py sets it",
    "kubectl kubesched why web-7 ": "asks the pod that no kubelet has started",
    "kubesched serve --expander ": "the certificate is the reader's; tests/e2e/test_serve.py has one",
    "cluster-autoscaler ": "is not installed here",
    "kubesched bench soak ": "takes half an hour; tests/e2e/test_bench_soak.py takes seconds",
}
SHORTER = {  # the same in less time
    "bench engine --nodes 5000 --pods 10000": "bench engine --nodes 500 --pods 1000",
    "bench cluster --nodes 1000": "bench cluster --nodes 50 --pods 100",
    "docs/examples/packing-": "--workers 1 shorter/packing-",
    "count: 10": "count: 2",
    "count: 4": "count: 2",
    "count: 6": "count: 2",
    "candidates: 40": "candidates: 2",
    "duration: 2h": "duration: 5m",
}
STAYS = {
    "kubesched run ": "caches are synced",
    "kubesched shadow ": "Ctrl-C ends it",
    "kubesched observe ": "Ctrl-C ends it",
    "kubesched serve ": "Serving http",
}  # until ended; and what is said when it works


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def shorter(text: str) -> str:
    for long, short in SHORTER.items():
        text = text.replace(long, short)
    return text


def is_run(command: str) -> bool:
    return not command.startswith(tuple(NOT_RUN))


@pytest.fixture(scope="module")
def demo() -> Iterator[Running]:
    """The cluster of all pages: a user's `kubesched demo`."""
    with running("--pods", "40") as started:
        started.until("Press Ctrl-C")
        yield started


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home, where the commands of a page are typed. No cluster is known in it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return tmp_path


@pytest.fixture
def cluster(demo: Running, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the demo be the cluster that is known at home."""
    (home / ".kube").mkdir()
    for name in (".kube/config", "scheduler.conf"):
        shutil.copy(demo.kubeconfig, home / name)
    (home / "shorter").mkdir()
    for file in (ROOT / "docs" / "examples").glob("*.yaml"):
        (home / "shorter" / file.name).write_text(shorter(file.read_text(encoding="utf-8")))
    monkeypatch.setenv("SERVER", demo.page.removesuffix("/ui/"))


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_of)
def test_a_page_can_be_typed_from_top_to_bottom(page: Path, home: Path, request: pytest.FixtureRequest) -> None:
    shell = [
        command for block in blocks_of(page) if block.language == "sh" and block.has_commands for command, _ in steps_of(block)
    ]
    if any(map(is_run, shell)):
        if shutil.which("kubectl") is None and any(command.startswith("kubectl ") for command in shell):
            pytest.skip("the page needs kubectl")
        request.getfixturevalue("cluster")
    for block, command, said in sessions_in(page, home):
        if is_run(command):
            type_it(block, command, said, home)


def type_it(block: Block, command: str, said: str | None, folder: Path) -> None:
    stays = next((sign for start, sign in STAYS.items() if command.startswith(start) and "--duration" not in command), None)
    if said is None and stays is not None:
        printed = run_until(command, folder, stays)
        assert stays in printed, f"{block.where}: {command}\nprints\n{printed}"
        return
    code, printed = run_to_the_end(shorter(command) if said is None else command, folder)
    if said is None:
        assert code == 0, f"{block.where}: {command}\nends with {code}:\n{printed}"
    else:
        assert same(said, printed), f"{block.where}: {command}\nprints\n{printed}\nthe page says\n{said}"


MARKED = sorted({(block.page, block.tested_by) for block in ALL_BLOCKS if block.tested_by})


@pytest.mark.parametrize(("page", "mark"), MARKED)
def test_a_session_that_another_test_runs_is_read_from_the_page_by_that_test(page: str, mark: str) -> None:
    path, _, name = mark.partition("::")
    text = (ROOT / path).read_text(encoding="utf-8")
    assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), f"{page}: there is no {mark}"
    named = f'"{Path(page).name}"'
    assert named in text, f"{page}: {path} does not read the page: it nowhere says {named}"


def test_no_command_hides_from_being_run() -> None:
    hidden = [block.where for block in ALL_BLOCKS if block.language != "console" and "$ kubesched" in block.text]
    hidden += [block.where for block in ALL_BLOCKS if block.language in ("bash", "shell", "zsh")]
    indented = [
        f"{name_of(page)}: {line}"
        for page in PAGES
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("    kubesched ")
    ]
    assert hidden == [], "a session belongs into a ```console block, commands alone into a ```sh block"
    assert indented == [], "a command belongs into a ```sh block"


def test_every_command_that_is_not_run_has_its_reason_and_every_reason_a_command() -> None:
    commands = [command for block in ALL_BLOCKS if block.has_commands for command, _ in steps_of(block)]
    assert len(commands) > 100
    assert [start for start in NOT_RUN if not any(command.startswith(start) for command in commands)] == []
    for command in commands:
        if command.startswith("make "):
            done = subprocess.run(["make", "-n", *shlex.split(command)[1:]], cwd=ROOT, capture_output=True, text=True)
            assert done.returncode == 0, f"{command}: {done.stderr}"
        elif command.startswith("kubesched ") and not is_run(command):
            assert_it_exists(command, "a page")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_in_the_text_are_ones_that_there_are(page: Path) -> None:
    for command in inline_commands(page):
        assert_it_exists(command.removeprefix("kubectl "), name_of(page))


def assert_it_exists(line: str, where: str) -> None:
    """Look up a call of our program: its command, and its flags."""
    words = [word.strip("[]") for word in shlex.split(re.split(r" [|>&]", line)[0])][1:]
    command: click.Command = cli
    with click.Context(cli) as context:
        while words and isinstance(command, click.Group) and not words[0].startswith("-"):
            found = [command.get_command(context, name) for name in words[0].replace("\\", "").split("|")]
            assert None not in found, f"{where}: {line}: there is no {words[0]}"
            command, words = found[-1] or cli, words[1:]
    names = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {
        "--help",
        "--version",
    }
    if command.name == "run":
        names = {f"--{flag.name}" for flag in ALL_FLAGS} | {"-v"}
    for word in words:
        if word.startswith("-") and word != "-":
            assert word.split("=")[0] in names, f"{where}: {line}: {command.name} has no {word}"


def test_figures_are_made_by_commands_that_there_are() -> None:
    tables = list(performance_tables.TABLE.finditer(performance_tables.PAGE.read_text(encoding="utf-8")))
    assert len(tables) >= 4
    for found in tables:
        fields, first_line = found[2].split(), found[3]
        assert performance_tables.head_of(fields) in found[0], first_line
        for command in re.findall(r"`(.+?)`", first_line):
            if command.startswith("python "):
                assert (ROOT / command.split()[1]).exists(), command
            else:
                assert_it_exists(command, "docs/explanation/performance-details.md")


PYTHON = [block for block in ALL_BLOCKS if block.language == "python" and not (block.file or block.tested_by or block.not_run)]


def test_python_that_a_page_shows_runs(tmp_path: Path) -> None:
    """In one process, as most of its time is the start, and not in this one: examples register things. The blocks of a page
    share their names, as for who types them one after the other."""
    prepare(tmp_path)
    lines = ["import traceback", "pages = {}"]
    for block in PYTHON:
        names = f"pages.setdefault({block.page!r}, {{'__name__': 'example'}})"
        run_it = f"exec(compile({block.text!r}, {block.where!r}, 'exec'), {names})"
        lines += ["try:", f"    {run_it}", "except BaseException:", "    traceback.print_exc()"]
    (tmp_path / "all.py").write_text("\n".join(lines))
    assert len(PYTHON) > 5
    assert "Error" not in run("python -W ignore all.py", tmp_path)


YAML = [block for block in ALL_BLOCKS if block.language == "yaml"]


@pytest.mark.parametrize("block", YAML, ids=lambda block: block.where)
def test_yaml_that_a_page_shows_can_be_read(block: Block) -> None:
    for document in yaml.safe_load_all(block.text):
        assert isinstance(document, dict)
        if document.get("kind") == "KubeSchedulerConfiguration" and not block.file:  # of a file, the page's commands tell
            assert Policy.read(block.text, (), ()).configuration.profiles
