"""Builds the kubectl plugin for this platform, runs it, and writes what krew needs to install it.

In: the checkout, and PyPI for what it depends on, by the hashes that are locked for the image. Out: in dist/kubectl-plugin an
archive with the program (one file, made by shiv, which needs nothing but the Python it was built with), its completion, and
the licence, the same bytes from the same commit; the archive's sha256; and `kubesched.yaml`, a manifest that krew accepts.
Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "image.txt"
sys.path.insert(0, str(ROOT / "tools"))

from trim_install import trim  # noqa: E402

NAME, PROGRAM, COMPLETION = "kubesched", "kubectl-kubesched", "kubectl_complete-kubesched"
URL = "https://example.com/kubesched"
SHORT = "Explain and plan pod placements"
DESCRIPTION = (
    "Says why a pod waits or is where it is, where manifests would go and whom they would evict, how many more of a pod "
    "fit, and which nodes to add. Decides as kube-scheduler does, also where kubesched is not installed. The cluster is "
    "only read. Needs Python {python}."
)
_COMPLETION = f"""\
#!/bin/sh
# What kubectl runs to complete a line of `kubectl {NAME}`.
exec {PROGRAM} __complete "$@"
"""
_ARCHITECTURES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64"}


def this_platform() -> tuple[str, str]:
    """Return the operating system and the architecture as krew calls them."""
    machine = platform.machine()
    return platform.system().lower(), _ARCHITECTURES.get(machine, machine)


def semantic(release: str) -> str:
    """Return a Python version as krew wants it, by semver: 1.2.0rc1 is 1.2.0-rc.1, 0.3.1.dev7+gabc is 0.3.1-dev.7."""
    return re.sub(r"^(\d+\.\d+\.\d+)\.?(a|b|rc|dev)(\d+)", r"\1-\2.\3", release.partition("+")[0])


def manifest(archives: dict[tuple[str, str], tuple[str, str]], release: str, url: str, python: str) -> dict[str, Any]:
    """Return the manifest for archives: by system and architecture, the name of the file and its sha256."""
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": NAME},
        "spec": {
            "version": f"v{semantic(release)}",
            "shortDescription": SHORT,
            "description": DESCRIPTION.format(python=python),
            "caveats": f"For completion put {COMPLETION}, which is in the archive, into a folder of the PATH.",
            "platforms": [
                {
                    "selector": {"matchLabels": {"os": system, "arch": architecture}},
                    "uri": f"{url}/{file}",
                    "sha256": digest,
                    "bin": PROGRAM,
                    "files": [{"from": name, "to": "."} for name in (PROGRAM, COMPLETION, "LICENSE")],
                }
                for (system, architecture), (file, digest) in sorted(archives.items())
            ],
        },
    }


def pack(archive: Path, modes: Mapping[Path, int]) -> None:
    """Write files into an archive whose bytes follow from their names, modes and contents alone."""
    with gzip.GzipFile(archive, "wb", mtime=0) as squeezed, tarfile.open(fileobj=squeezed, mode="w") as packed:
        for file, mode in modes.items():
            member = tarfile.TarInfo(file.name)
            member.size, member.mode = file.stat().st_size, mode
            with file.open("rb") as content:
                packed.addfile(member, content)


def build(folder: Path, url: str) -> Path:
    """Build everything into a folder; return the manifest's path."""
    folder.mkdir(parents=True, exist_ok=True)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    program, completion = folder / PROGRAM, folder / COMPLETION
    shebang = f"/usr/bin/env python{python}"
    asked = [sys.executable, "-m", "shiv", "--compressed", "--reproducible", "-c", PROGRAM, "-p", shebang]
    with tempfile.TemporaryDirectory() as site:
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", site]
        subprocess.run([*install, "--require-hashes", "--only-binary", ":all:", "-r", str(LOCK)], check=True)
        subprocess.run([*install, "--upgrade", "--no-deps", "--no-build-isolation", str(ROOT)], check=True)
        (built,) = distributions(name=NAME, path=[site])
        release = built.version
        trim(Path(site))
        subprocess.run([*asked, "--site-packages", site, "-o", str(program)], check=True)
    completion.write_text(_COMPLETION)
    for file in (program, completion):
        file.chmod(0o755)
    system, architecture = this_platform()
    archive = folder / f"{NAME}-plugin_{release}_{system}_{architecture}.tar.gz"  # kubectl takes kubectl-* for plugins
    pack(archive, {program: 0o755, completion: 0o755, ROOT / "LICENSE": 0o644})
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    Path(f"{archive}.sha256").write_text(f"{digest}  {archive.name}\n", encoding="utf-8")
    written = folder / f"{NAME}.yaml"
    document = manifest({(system, architecture): (archive.name, digest)}, release, url, python)
    written.write_text(yaml.safe_dump(document, sort_keys=False, width=120))
    subprocess.run([str(program), "--version"], check=True)
    print(f"{archive} ({archive.stat().st_size // 2**20} MiB), {written}")
    return written


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build the kubectl plugin for this platform.")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist" / "kubectl-plugin", help="where to put it")
    parser.add_argument("--url", default=URL, help="where the archive will be downloaded from")
    given = parser.parse_args()
    build(given.folder, given.url.rstrip("/"))
