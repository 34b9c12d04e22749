"""An older release and this one side by side: replicas are replaced one after the other, up and down, and no pod is lost.

The older code comes out of git: the last release of each minor from 1.0 on, or, before there is one, a commit from some time
ago. Without that history there is nothing to try.
"""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from control_planes import Api
from replicas import Replicas, agree, check_bound_once

ROOT = Path(__file__).parents[2]
COMMITS_AGO = 150


def git(*words: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=True).stdout


def older_releases() -> list[str]:
    """Return what to upgrade from: names that git knows."""
    try:
        tags = git("tag", "--merged", "HEAD", "--sort=version:refname").decode().split()
        newest = {found[1]: tag for tag in tags if (found := re.fullmatch(r"v(1\.\d+)\.\d+", tag))}
        return list(newest.values()) or git("rev-parse", f"HEAD~{COMMITS_AGO}").decode().split()
    except (OSError, subprocess.CalledProcessError):
        return []


def program_of(release: str, folder: Path) -> tuple[str, ...]:
    """Unpack a release; return the command that runs it."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", release, "kubesched"))) as archive:
        archive.extractall(folder, filter="data")
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); from kubesched.cli import main; main()"
    return (sys.executable, "-c", code)


@pytest.mark.nightly
@pytest.mark.parametrize("release", older_releases() or [pytest.param("", marks=pytest.mark.skip("no history of git"))])
@pytest.mark.parametrize("way", ["up", "down"])
async def test_replicas_are_replaced_one_by_one_and_no_pod_is_lost(
    api: Api, replicas: Replicas, tmp_path: Path, release: str, way: str
) -> None:
    older = {"program": program_of(release, tmp_path / "older")}
    first, second = ({}, older) if way == "down" else (older, {})
    await api.add_nodes(6)
    leaving = [await replicas.start(**first), await replicas.start(**first)]
    await api.until_leader()
    await api.add_pods(0, 40)
    await api.until_bound(40)
    bound = 40
    for replica in leaving:
        coming = await replicas.start(**second)
        await coming.until_says("attempting to acquire")
        await api.add_pods(bound, 40)  # some of them are being decided when the replica goes
        replica.send(signal.SIGTERM)
        bound += 40
        await api.until_bound(bound)
    pods = await api.pods()
    assert len(pods) == bound and all(pod["spec"].get("nodeName") for pod in pods)
    check_bound_once(pods, (await api.get("/api/v1/nodes"))["items"], *(replica.witness for replica in replicas.all))
    await agree(replicas.all[-1], api)
