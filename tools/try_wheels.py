"""Tries what `make wheels` has put into dist: runs what this machine can run, and inspects the rest.

In: dist, tests/conformance, and PyPI for what a wheel depends on. Out: a row for each file. A wheel for this machine, the
pure wheel and the sdist are each installed into an environment of their own, outside of the checkout. There they say which
kernels run, decide golden cases and place the pods of the demo. Every compiled wheel is checked against the stable ABI, and
those for glibc also against their platform. Exit code 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ("resources", "spread", "preempt", "v1.37/resources")
"""Families that need no CEL."""


class Failed(Exception):
    """What is wrong with a file."""


def run(words: list[str], **settings: str) -> str:
    """Run a program without anything of the checkout; return its output."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KUBESCHED", "VIRTUAL_ENV"))}
    done = subprocess.run(words, env={**clean, **settings}, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise Failed(f"{' '.join(words[:3])}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
    return done.stdout


def runs_here(file: Path) -> bool:
    """Return whether pip would install a file on this machine."""
    return file.suffix != ".whl" or bool(parse_wheel_filename(file.name)[3] & set(sys_tags()))


def try_out(file: Path, kernels: str) -> str:
    """Install a file into a new environment and use it; return what was seen."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin")
        without = _megabytes(folder)
        started = time.monotonic()
        run([str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(file)])
        took = time.monotonic() - started
        size = _megabytes(folder) - without
        kubesched = str(programs / "kubesched")
        said = run([kubesched, "--version", "-v"])
        if f"kernels: {kernels}" not in said:
            raise Failed(f"kernels: {kernels} is expected, found {said}")
        cases = [str(ROOT / "tests" / "conformance" / f"{family}.jsonl.gz") for family in GOLDEN]
        run([kubesched, "conformance", *(case for case in cases if Path(case).exists())])
        if sys.platform != "win32":
            run([kubesched, "demo", "--once"])
        return f"runs, {kernels}; installed in {took:.0f} s, {size:.0f} MB"


def inspect(file: Path) -> str:
    """Return what a compiled wheel is found to be; what is not said about it is not known."""
    programs = Path(sys.executable).parent
    run([str(programs / "abi3audit"), "--strict", str(file)])
    with zipfile.ZipFile(file) as wheel:
        libraries = [name for name in wheel.namelist() if "_compiled." in name and name.endswith((".so", ".pyd"))]
    if len(libraries) != 1:
        raise Failed(f"one library is expected, found {libraries}")
    found = "stable ABI only"
    if "manylinux" in file.name:
        shown = " ".join(run([str(programs / "auditwheel"), "show", str(file)]).split())
        platform = file.stem.rpartition("-")[2]
        if "requires no external shared libraries" not in shown:
            raise Failed(f"auditwheel: {shown}")
        found += f", {shown.partition('platform tag: ')[2].partition('.')[0]} is enough for {platform}"
    return found


def main(dist: Path) -> int:
    """Try every file; return the exit code."""
    failed = 0
    for file in sorted([*dist.glob("*.whl"), *dist.glob("*.tar.gz")]):
        try:
            is_compiled = "abi3" in file.name
            found = [inspect(file)] if is_compiled and sys.platform != "win32" else []
            if runs_here(file):
                has_compiler = file.suffix != ".whl" and shutil.which("cc")
                found.append(try_out(file, "compiled" if is_compiled or has_compiler else "numpy"))
            else:
                found.append("does not run on this machine")
        except Failed as error:
            failed, found = 1, [f"FAILED: {error}"]
        print(f"{file.name}  {file.stat().st_size / 1e6:.1f} MB\n    {'; '.join(found)}", flush=True)
    return failed


def _megabytes(folder: str) -> float:
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run or inspect what is in dist.")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where it is")
    sys.exit(main(parser.parse_args().dist))
