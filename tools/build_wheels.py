"""Builds what a release puts on Python's index: a wheel with compiled loops for each platform, the pure wheel, the sdist.

In: the checkout, the headers of the Python that runs, and ziglang, a C compiler for all platforms that is a package of PyPI.
Out: files in dist, the same bytes from the same commit. The loops use Python's stable ABI alone, so nothing of the target's
Python is needed but names: Linux and macOS find them when the module is loaded, Windows by a list of them (python3.lib, made
here). Headers are those of this Python with a pyconfig.h of our own, which says sizes as the compiler knows them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from build_kernels import SOURCE, Compiler, compile_with  # noqa: E402

ZIG = (sys.executable, "-m", "ziglang")
LEVELS: dict[int, tuple[str, ...]] = {1: (), 3: ("-march=x86_64_v3",), 4: ("-march=x86_64_v4",)}
"""As build_kernels.LEVELS, in this compiler's spelling."""


class Target(NamedTuple):
    """A platform: as a wheel's tag says it, and as the compiler does."""

    platform: str
    triple: str
    library: str = "_compiled.abi3.so"
    linking: tuple[str, ...] = ()


_MACOS = ("-undefined", "dynamic_lookup", "-Wl,-install_name,@rpath/_compiled.abi3.so")
"""A macOS library holds its own name: without one the linker takes the path of the output, which is a new folder each time."""
TARGETS = (
    Target("manylinux_2_17_x86_64", "x86_64-linux-gnu.2.17"),
    Target("manylinux_2_17_aarch64", "aarch64-linux-gnu.2.17"),
    Target("musllinux_1_2_x86_64", "x86_64-linux-musl"),
    Target("musllinux_1_2_aarch64", "aarch64-linux-musl"),
    Target("macosx_11_0_x86_64", "x86_64-macos.11.0", linking=_MACOS),
    Target("macosx_11_0_arm64", "aarch64-macos.11.0", linking=_MACOS),
    Target("win_amd64", "x86_64-windows-gnu", library="_compiled.pyd"),
)

PYCONFIG = """\
#define SIZEOF_VOID_P __SIZEOF_POINTER__
#define SIZEOF_SIZE_T __SIZEOF_SIZE_T__
#define SIZEOF_INT __SIZEOF_INT__
#define SIZEOF_LONG __SIZEOF_LONG__
#define SIZEOF_LONG_LONG __SIZEOF_LONG_LONG__
#define SIZEOF_WCHAR_T __SIZEOF_WCHAR_T__
#define ALIGNOF_SIZE_T __SIZEOF_SIZE_T__
#define HAVE_SSIZE_T 1
#define HAVE_STDINT_H 1
#ifdef _WIN32
#define MS_WINDOWS 1
#define MS_WIN64 1
#define HAVE_DECLSPEC_DLL 1
#define Py_ENABLE_SHARED 1
#include <sys/types.h>
#else
#define HAVE_SYS_TYPES_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_UNISTD_H 1
#endif
"""
DATA = re.compile(r"PyExc_\w+|_Py_\w+Struct|Py\w+_Type")
"""Names of the stable ABI that are variables. The linker must know them from functions."""


def headers(folder: Path) -> Path:
    """Copy this Python's headers, and replace what they say about this platform."""
    found = Path(sysconfig.get_paths()["include"])
    if not (found / "Python.h").exists():
        sys.exit(f"there is no Python.h in {found}: install the headers of this Python (Debian: python3-dev)")
    copy = folder / "include"
    shutil.copytree(found, copy)
    (copy / "pyconfig.h").write_text(PYCONFIG, encoding="utf-8")
    # Of macOS: Apple's compiler built Python for several processors at once, and says their sizes once more.
    (copy / "pymacconfig.h").write_text("", encoding="utf-8")
    return copy


def names_for_windows(include: Path, folder: Path) -> Path:
    """Write an import library of python3.dll: every name that the headers declare. The linker takes what is used."""
    words = [*ZIG, "cc", "-target", "x86_64-windows-gnu", "-E", f"-I{include}", str(ROOT / SOURCE)]
    declared = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    names = sorted(set(re.findall(r"\b_?Py\w+", declared)))
    lines = [f"{name} DATA" if DATA.fullmatch(name) else name for name in names]
    listed, library = folder / "python3.def", folder / "python3.lib"
    listed.write_text("\n".join(["LIBRARY python3.dll", "EXPORTS", *lines, ""]), encoding="utf-8")
    subprocess.run([*ZIG, "dlltool", "-m", "i386:x86-64", "-d", str(listed), "-l", str(library)], check=True)
    return library


def build_wheel(dist: Path, *, sdist: bool = False, **environment: str) -> None:
    """Build a wheel into a folder, and the sdist before it where that is wanted."""
    words = [sys.executable, "-m", "build", "--quiet", "--no-isolation", "--outdir", str(dist), str(ROOT)]
    subprocess.run([*words, *([] if sdist else ["--wheel"])], env={**os.environ, **environment}, check=True)


def build(dist: Path, targets: tuple[Target, ...]) -> None:
    """Build everything into a folder."""
    build_wheel(dist, sdist=True, KUBESCHED_KERNELS="numpy")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        include = headers(folder)
        for platform, triple, name, linking in targets:
            library = folder / platform / name
            library.parent.mkdir()
            if library.suffix == ".pyd":
                linking = (*linking, str(names_for_windows(include, folder)))
            levels = LEVELS if triple.startswith("x86_64") else {}
            if not compile_with(
                Compiler((*ZIG, "cc", "-target", triple), str(include), levels, linking),
                ROOT / SOURCE,
                library,
                sys.stderr.fileno(),
            ):
                sys.exit(f"{triple}: the loops were not compiled")
            build_wheel(dist, KUBESCHED_LIBRARY=str(library), KUBESCHED_PLATFORM=platform)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build the wheels of all platforms and the sdist.")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where to put them")
    parser.add_argument("--platform", action="append", help="only this one; may be repeated")
    given = parser.parse_args()
    build(given.dist, tuple(one for one in TARGETS if not given.platform or one.platform in given.platform))
