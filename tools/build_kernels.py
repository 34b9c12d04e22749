"""Compile kubesched/scheduler/kernels/_compiled.c at installation or when a wheel is built, where there is a C compiler.

In: the source; CC, or the compiler that Python was built with. Out: a shared library, beside the source for an editable
install, else in the wheel, which is then one for this platform and for all Pythons from 3.11 on. Without a compiler, or with
KUBESCHED_KERNELS=numpy, the wheel is the same for every platform, and the formulas run in NumPy.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = "kubesched/scheduler/kernels/_compiled.c"
LIBRARY = "kubesched/scheduler/kernels/_compiled.abi3.so"
FLAGS = ("-O3", "-g0", "-s", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math")
SAME_BITS = "-ffp-contract=off"
"""Or a product and a sum would be rounded once, and in NumPy twice."""


class BuildKernels(BuildHookInterface):  # type: ignore[misc]
    PLUGIN_NAME = "custom"
    _folder: Path | None = None
    """Where it was compiled, until the wheel is written."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        if version != "editable":
            self._folder = Path(tempfile.mkdtemp())
        library = root / LIBRARY if self._folder is None else self._folder / "library"
        is_wanted = os.environ.get("KUBESCHED_KERNELS") != "numpy"
        if not (is_wanted and compile_library(root / SOURCE, library)):
            library.unlink(missing_ok=True)  # of an older source
            if is_wanted:
                self.app.display_warning("no C compiler, or no headers of Python: formulas over all nodes will run in NumPy")
        elif self._folder is not None:
            build_data["force_include"][str(library)] = LIBRARY
            build_data["pure_python"] = False
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"cp311-abi3-{platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder)


def compile_library(source: Path, library: Path) -> bool:
    """Compile a source; return whether that worked. A compiler that knows no clones of functions is asked without them."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    for_platform = ("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ()
    include = f"-I{sysconfig.get_paths()['include']}"
    for more in ((), ("-DKUBESCHED_NO_CLONES",)):
        words = [*compiler, *FLAGS, SAME_BITS, *for_platform, *more, include, str(source), "-o", str(library)]
        try:
            if subprocess.run(words, capture_output=True, timeout=300, check=False).returncode == 0:
                return True
        except (OSError, subprocess.SubprocessError):
            return False
    return False
