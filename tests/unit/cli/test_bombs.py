"""Files that stand for more than they say end every command that reads them in one line."""

from __future__ import annotations

import gzip
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kubesched.cli import main
from kubesched.telemetry import logs

LAUGHS = "a0: &a0 [lol]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
FILES = {
    "laughs.yaml": LAUGHS,
    "config.yaml": CONFIG + LAUGHS,
    "deep.yaml": "[" * 50_000,
    "deep.json": '{"a":' * 50_000,
    "digits.yaml": f"{CONFIG}parallelism: {'9' * 200_000}\n",
    "digits.json": f'{{"apiVersion": "v1", "kind": "Pod", "spec": {"9" * 200_000}}}',
    "date.yaml": "duration: 2020-99-99\n",
    "tag.yaml": "current-context: !!bool perhaps\n",
    "contexts.yaml": "current-context: a\ncontexts: [1]\nclusters: 5\n",
    "many.yaml": yaml.safe_dump(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "many"},
            "spec": {
                "parallelism": (1 << 31) - 1,
                "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}},
            },
        }
    ),
    "bomb.gz": gzip.compress(bytes(80 << 20)),
}
COMMANDS = [
    ("config", "check", "config.yaml"),
    ("config", "check", "deep.yaml"),
    ("config", "check", "deep.json"),
    ("config", "check", "digits.yaml"),
    ("run", "--config", "config.yaml"),
    ("run", "--kubeconfig", "laughs.yaml"),
    ("plan", "--snapshot", "empty.jsonl", "-f", "laughs.yaml"),
    ("plan", "--snapshot", "empty.jsonl", "-f", "deep.json"),
    ("plan", "--snapshot", "empty.jsonl", "-f", "digits.json"),
    ("plan", "--snapshot", "bomb.gz", "-f", "digits.json"),
    ("plan", "--snapshot", "empty.jsonl", "--node-groups", "laughs.yaml"),
    ("plan", "--snapshot", "empty.jsonl", "--node-groups", "deep.yaml"),
    ("plan", "--snapshot", "empty.jsonl", "--node-groups", "digits.yaml"),
    ("simulate", "laughs.yaml"),
    ("simulate", "deep.yaml"),
    ("simulate", "date.yaml"),
    ("simulate", "tag.yaml"),
    ("plan", "--snapshot", "empty.jsonl", "--node-groups", "tag.yaml"),
    ("plan", "--snapshot", "empty.jsonl", "-f", "many.yaml"),
    ("plan", "--kubeconfig", "tag.yaml", "-f", "many.yaml"),
    ("plan", "--kubeconfig", "contexts.yaml", "-f", "many.yaml"),
    ("run", "--kubeconfig", "date.yaml"),
    ("run", "--kubeconfig", "tag.yaml"),
    ("decisions", "--log", "deep.json"),
    ("run", "--kubeconfig", "contexts.yaml"),
    ("why", "--kubeconfig", "laughs.yaml", "a"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bombs")
    for name, content in FILES.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "empty.jsonl").write_text('{"at": 1.0, "seed": 0}\n')
    return folder


@pytest.fixture(autouse=True)
def _own_logs() -> Iterator[None]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    logs.shut_down()
    root.handlers[:] = before
    root.setLevel(level)


@pytest.mark.parametrize("words", COMMANDS, ids=[" ".join(words) for words in COMMANDS])
def test_one_line_and_no_python_error(
    words: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["kubesched", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said
    lines = [line for line in said.splitlines() if not (line.startswith("Warning") or '"Starting Kubernetes' in line)]
    assert len(lines) == 1, said[:2000]
    assert len(lines[0]) < 400
