"""The part of kubernetes_asyncio that loads credentials, without the rest of it.

In: nothing. Out: its modules for kubeconfigs and service accounts. The library's front door also imports its generated
client, some 700 modules that nobody here uses: half a second of every start. The loaders need two names from there,
and only for functions that we do not call. So they are imported with that door left closed, and what was imported is
ours alone: whoever else in this process imports kubernetes_asyncio gets it whole. A version of the library that does
not take this is imported as usual.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

LIBRARY = "kubernetes_asyncio"
_LEFT_OUT = {f"{LIBRARY}.client": ("ApiClient", "Configuration")}


class Loaders(NamedTuple):
    """The library's modules; `refused` is what they raise."""

    kubeconfig: Any
    service_account: Any
    refused: type[Exception]


@cache
def credential_loaders() -> Loaders:
    """Import the loaders, once."""
    _have_a_home()
    if LIBRARY in sys.modules:
        return _import()
    try:
        return _import_alone()
    except (ImportError, AttributeError):
        return _import()


def _have_a_home() -> None:
    # The library looks for it while it is imported. A user id that the system has no name for, as some clusters give to
    # containers, has none unless HOME says one: "/" is what container runtimes say then.
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = "/"


def _import() -> Loaders:
    kubeconfig, service_account, config = (
        importlib.import_module(f"{LIBRARY}.config{rest}") for rest in (".kube_config", ".incluster_config", "")
    )
    return Loaders(kubeconfig, service_account, config.ConfigException)


def _import_alone() -> Loaders:
    spec = importlib.util.find_spec(LIBRARY)
    if spec is None:
        raise ImportError(f"no module named {LIBRARY}")
    sys.modules[LIBRARY] = importlib.util.module_from_spec(spec)  # it knows where its parts are, and has run nothing
    for module, names in _LEFT_OUT.items():
        sys.modules[module] = ModuleType(module)
        vars(sys.modules[module]).update(dict.fromkeys(names, object))
    try:
        return _import()
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == LIBRARY]:
            del sys.modules[name]
