"""Compile kubesched/scheduler/kernels/_compiled.c at installation or when a wheel is built, where there is a C compiler.

In: the source; CC, or the compiler that Python was built with. Out: a shared library, beside the source for an editable
install, else in the wheel, which is then one for this platform and for all Pythons from 3.11 on. Without a compiler, or with
KUBESCHED_KERNELS=numpy, the wheel is the same for every platform, and the formulas run in NumPy. KUBESCHED_LIBRARY names a
library that is compiled already, and KUBESCHED_PLATFORM the platform that it is for (tools/build_wheels.py).
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "kubesched/scheduler/kernels"
SOURCE = f"{FOLDER}/_compiled.c"
LIBRARY = f"{FOLDER}/_compiled.abi3.so"
FLAGS = ("-O3", "-g0", "-fPIC", "-fno-math-errno", "-fno-trapping-math")
SAME_BITS = "-ffp-contract=off"
"""Or a product and a sum would be rounded once, and in NumPy twice."""
LEVELS: dict[int, tuple[str, ...]] = {1: (), 3: ("-march=x86-64-v3",), 4: ("-march=x86-64-v4",)}
"""Of x86-64, where 1 is what every processor has: what each is compiled with. `_levels.c` takes one at import."""


class Compiler(NamedTuple):
    """A C compiler for a platform: its command, where Python.h is, and what the linker needs."""

    words: tuple[str, ...]
    include: str
    levels: Mapping[int, tuple[str, ...]]
    """Those of x86-64; none for other processors."""
    linking: tuple[str, ...] = ()


class BuildKernels(BuildHookInterface):  # type: ignore[misc]
    PLUGIN_NAME = "custom"
    _folder: Path | None = None
    """Where it was compiled, until the wheel is written."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        if given := os.environ.get("KUBESCHED_LIBRARY"):
            self._put_in(build_data, Path(given), os.environ["KUBESCHED_PLATFORM"])
            return
        if version != "editable":
            self._folder = Path(tempfile.mkdtemp())
        library = root / LIBRARY if self._folder is None else self._folder / Path(LIBRARY).name
        is_wanted = os.environ.get("KUBESCHED_KERNELS") != "numpy"
        if not (is_wanted and compile_library(root / SOURCE, library)):
            library.unlink(missing_ok=True)  # of an older source
            if is_wanted:
                self.app.display_warning("no C compiler, or no headers of Python: formulas over all nodes will run in NumPy")
        elif self._folder is not None:
            self._put_in(build_data, library, sysconfig.get_platform().replace("-", "_").replace(".", "_"))

    @staticmethod
    def _put_in(build_data: dict[str, Any], library: Path, platform: str) -> None:
        build_data["force_include"][str(library)] = f"{FOLDER}/{library.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder)


def this_compiler() -> Compiler:
    """Return the compiler for the Python that runs."""
    words = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    levels = LEVELS if platform.machine() in ("x86_64", "AMD64") else {}
    linking = ("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ()
    return Compiler(tuple(words), sysconfig.get_paths()["include"], levels, linking)


def compile_library(source: Path, library: Path) -> bool:
    """Compile a source with the compiler at hand; return whether that worked. One that knows no levels makes one form."""
    compiler = this_compiler()
    try:
        return compile_with(compiler, source, library) or compile_with(compiler._replace(levels={}), source, library)
    except (OSError, subprocess.SubprocessError):
        return False


def compile_with(compiler: Compiler, source: Path, library: Path, errors: int = subprocess.DEVNULL) -> bool:
    """Compile a source for a platform, for x86-64 once for each level; return whether that worked. Errors go to a file."""

    def is_done(*words: str) -> bool:
        words = (*compiler.words, *words)
        done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=errors, timeout=300, check=False)
        return done.returncode == 0

    parts = [(source, (*more, f"-DPyInit__compiled=kubesched_level_{level}")) for level, more in compiler.levels.items()]
    parts.append((source.with_name("_levels.c") if compiler.levels else source, ()))
    with tempfile.TemporaryDirectory() as folder:
        objects = [f"{folder}/{number}.o" for number in range(len(parts))]
        return all(
            is_done(*FLAGS, SAME_BITS, *more, f"-I{compiler.include}", "-c", str(part), "-o", file)
            for (part, more), file in zip(parts, objects, strict=True)
        ) and is_done("-shared", "-s", *objects, *compiler.linking, "-o", str(library))
