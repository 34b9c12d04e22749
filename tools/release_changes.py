"""What changed between two tags of Kubernetes that a scheduler may have to follow.

In: the path of a clone of Kubernetes, bare or not, and two tags. Out, as Markdown: commits by area with the files that they
change, feature gates that are new, gone or other than before, fields that the API gained or lost, and what the newer source
announces for the release after it.

    python tools/release_changes.py ../kubernetes v1.36.4 v1.37.0-rc.1 > changes.md

Tests, mocks and generated files are left out. A commit in several areas is listed in each.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

AREAS: Mapping[str, tuple[str, ...]] = {
    "Scheduler": ("pkg/scheduler", "cmd/kube-scheduler"),
    "Contract for plugins, and configuration": ("staging/src/k8s.io/kube-scheduler",),
    "Dynamic resource allocation": ("staging/src/k8s.io/dynamic-resource-allocation",),
    "Arithmetic and matching of pods": (
        "staging/src/k8s.io/component-helpers",
        "staging/src/k8s.io/apimachinery/pkg/api/resource",
        "staging/src/k8s.io/apimachinery/pkg/labels",
    ),
    "CEL": ("staging/src/k8s.io/apiserver/pkg/cel", "vendor/github.com/google/cel-go"),
    "API": ("staging/src/k8s.io/api",),
}
GATES = "pkg/features/kube_features.go"
API_TYPES = "staging/src/k8s.io/api"

_LEFT_OUT = re.compile(r"_test\.go$|/testing/|/testdata/|zz_generated|generated\.(?:pb|proto)|/OWNERS$|\.md$|BUILD\.bazel$")
_SPEC = re.compile(r"^\t(?:genericfeatures\.)?(\w+): \{$")
_STAGE = re.compile(r'version\.MustParse\("([\d.]+)"\), Default: (\w+), PreRelease: featuregate\.(\w+)(, LockToDefault: true)?')
_FIELD = re.compile(r'^([+-])\s+(\w+)\s.*`json:"(\w+)')
_MARK = "\x1e"


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit, and the files of one area that it changes."""

    name: str
    date: str
    subject: str
    files: tuple[str, ...]


def git(clone: Path, *arguments: str) -> str:
    """Return what git prints."""
    done = subprocess.run(("git", "-C", str(clone), *arguments), capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise SystemExit(f"{clone}: git {arguments[0]}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


def commits(clone: Path, since: str, until: str, paths: Iterable[str]) -> list[Commit]:
    """Return the commits that change more than tests below some paths, newest first."""
    text = git(clone, "log", "--no-merges", "--name-only", f"--format={_MARK}%h\t%cs\t%s", f"{since}..{until}", "--", *paths)
    found = []
    for part in text.split(_MARK)[1:]:
        head, *rest = part.splitlines()
        files = tuple(file for file in rest if file and not _LEFT_OUT.search(file))
        if files:
            found.append(Commit(*head.split("\t", 2), files))
    return found


def gates(clone: Path, tag: str) -> dict[str, tuple[str, ...]]:
    """Return every gate with its history: "1.36 beta on, locked"."""
    found: dict[str, tuple[str, ...]] = {}
    name = ""
    for line in git(clone, "show", f"{tag}:{GATES}").splitlines():
        if spec := _SPEC.match(line):
            name = spec[1]
        elif name and (stage := _STAGE.search(line)):
            version, default, maturity, locked = stage.groups()
            text = f"{version} {maturity.lower()} {'on' if default == 'true' else 'off'}{', locked' if locked else ''}"
            found[name] = (*found.get(name, ()), text)
    return found


def fields(clone: Path, since: str, until: str) -> list[str]:
    """Return the API's fields that came and went: "core/v1 +resize (Resize)"."""
    lines = []
    current = ""
    for line in git(clone, "diff", "-U0", since, until, "--", f"{API_TYPES}/*/*/types.go").splitlines():
        if line.startswith(("+++ ", "--- ")):
            current = "/".join(line.removesuffix("/types.go").split("/")[-2:])
        elif field := _FIELD.match(line):
            sign, name, json_name = field.groups()
            lines.append(f"{current} {sign}{json_name} ({name})")
    # A field that only stands elsewhere now came and went.
    other = {line: line.replace(" +", " -", 1) if " +" in line else line.replace(" -", " +", 1) for line in lines}
    return [line for line in lines if other[line] not in other]


def announced(clone: Path, until: str) -> list[str]:
    """Return what comments of the newer source say about the minor release after the newest that a gate names."""
    versions = {tuple(map(int, stage.split(" ")[0].split("."))) for stages in gates(clone, until).values() for stage in stages}
    major, minor = max(versions, default=(0, 0))
    following = re.compile(rf"//.*\b[vV]?{major}\.{minor + 1}\b.*")
    found, name = [], ""
    for line in git(clone, "show", f"{until}:{GATES}").splitlines():
        if spec := _SPEC.match(line):
            name = spec[1]
        if name and (comment := following.search(line)):
            found.append(f"{name}: {comment[0]}")
    paths = [path for area in AREAS.values() for path in area if not path.startswith("vendor")]
    # Every file has a package, so that git finds something and does not fail.
    shown = git(clone, "grep", "-n", "-e", f"{major}[.]{minor + 1}", "--or", "-e", "package ", until, "--", *paths)
    for line in shown.splitlines():
        _, file, number, text = line.split(":", 3)
        if following.search(text) and not _LEFT_OUT.search(file):
            found.append(f"{file}:{number}: {' '.join(text.split())}")
    return found


def report(clone: Path, since: str, until: str) -> str:
    """Return the whole list as Markdown."""
    parts = [f"# Kubernetes {since} to {until}"]
    for title, paths in AREAS.items():
        found = commits(clone, since, until, paths)
        parts.append(f"## {title}: {len(found)} commits")
        parts += [f"* `{each.name}` {each.date} {each.subject} ({_few(each.files)})" for each in found]
    before, after = gates(clone, since), gates(clone, until)
    parts.append("## Feature gates")
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old != new:
            parts.append(f"* {name}: {' · '.join(old) if old else 'new'} → {' · '.join(new) if new else 'gone'}")
    parts.append("## Fields of the API")
    parts += [f"* {line}" for line in fields(clone, since, until)]
    parts.append(f"## Announced in {until} for the release after it")
    parts += [f"* `{line}`" for line in announced(clone, until)]
    return "\n".join(parts) + "\n"


def _few(files: tuple[str, ...], most: int = 3) -> str:
    names = [file.removeprefix("staging/src/k8s.io/") for file in files]
    return ", ".join(names[:most]) + (f", {len(names) - most} more" if len(names) > most else "")


def main() -> None:
    parser = argparse.ArgumentParser(
        description="List what changed between two tags of Kubernetes that a scheduler may follow."
    )
    parser.add_argument("clone", type=Path, help="a clone of Kubernetes; it may be bare")
    parser.add_argument("since", help="the older tag")
    parser.add_argument("until", help="the newer tag or branch")
    asked = parser.parse_args()
    print(report(asked.clone, asked.since, asked.until), end="")


if __name__ == "__main__":
    main()
