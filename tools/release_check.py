"""Runs all of a release that can be run on this machine, and says what could not be and why (`make release-check`).

In: the checkout, and the programs that are there. Out: a row for each step: ok, FAILED or not run; a log of each in
build/release-check. Exit code 1 if a step failed. What only GitHub, a registry or an index can do is listed at the end.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "release-check"


class Step(NamedTuple):
    """A command, and the program without which it cannot run."""

    name: str
    command: str
    needs: str = ""


IMAGE = "kubesched:check"
KUSTOMIZE = "for each in replacement second-scheduler shadow; do kubectl kustomize deploy/kustomize/$each || exit 1; done"
STEPS = (
    Step("checks and unit tests", "make check"),
    Step("golden cases", "make conformance"),
    Step("end-to-end tests", "make e2e"),
    Step("long tests, replicas of older commits, oldest dependencies", "make nightly"),
    Step("wheels and sdist", "make wheels", "git"),
    Step("the same bytes again", "mv dist build/first && make wheels && diff -r build/first dist", "git"),
    Step("each wheel runs or is inspected", "make try-wheels"),
    Step("uvx", ".venv/bin/uv tool run --from dist/*-py3-none-any.whl kubesched demo --once"),
    Step("bill of materials", "make sbom"),
    Step("kubectl plugin", "make kubectl-plugin"),
    Step("site", "make docs"),
    Step("chart, by helm", "helm lint deploy/helm/kubesched && helm template kubesched deploy/helm/kubesched", "helm"),
    Step("manifests, by kubectl", KUSTOMIZE, "kubectl"),
    Step("image", f"docker build -f deploy/Dockerfile -t {IMAGE} . && docker run --rm {IMAGE} --version", "docker"),
)  # fmt: skip

ELSEWHERE = (
    ("wheels for macOS, Windows, arm64 and musl run", "jobs `wheels` and `wheels-musl` of .github/workflows/release.yaml"),
    ("image for arm64, signed provenance, push", "job `image`, with the registry's credentials"),
    ("upload to the index, release page", "job `publish`, after a maintainer's approval"),
    ("krew accepts the manifest", "a pull request to krew's index"),
    ("a real API server", 'make e2e-real RELEASES="DIR ..."'),
)


def run(step: Step, log: Path) -> str:
    """Run a step; return what is said of it."""
    if step.needs and shutil.which(step.needs) is None:
        return f"not run: there is no {step.needs}"
    if step.needs == "docker" and subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        return "not run: docker does not answer"
    started = time.monotonic()
    with log.open("wb") as file:
        words = ["bash", "-c", step.command]
        code = subprocess.run(words, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, check=False).returncode
    took = f"{time.monotonic() - started:.0f} s"
    return f"ok, {took}" if code == 0 else f"FAILED, {took}: {log.relative_to(ROOT)}"


def main(only: list[str]) -> int:
    """Run the steps whose names contain one of the words, or all; return the exit code."""
    shutil.rmtree(ROOT / "build" / "first", ignore_errors=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    failed = 0
    for number, step in enumerate(STEPS, 1):
        if only and not any(word in step.name for word in only):
            continue
        said = run(step, LOGS / f"{number:02}.log")
        failed += said.startswith("FAILED")
        print(f"{step.name:60}  {said}", flush=True)
    print("\nNot to be had on one machine:")
    for what, where in ELSEWHERE:
        print(f"  {what}: {where}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
