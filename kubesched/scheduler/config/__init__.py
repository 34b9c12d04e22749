"""The configuration room: KubeSchedulerConfiguration files, feature gates and plugin arguments.

In: text and flags. Out: frozen values that the other rooms can rely on without asking again. It knows plugins by
name, by extension point and by the type of their arguments (`Catalogue`), never as classes, and it opens no socket.
The names below are imported when they are first used: `run --help` needs durations and gates, and no YAML.

    load(text or path, gates=..., registry=...) -> Configuration      effective(configuration) -> document
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubesched.scheduler.config.args import Args
    from kubesched.scheduler.config.catalogue import POINTS, Catalogue, Known
    from kubesched.scheduler.config.configz import from_configz
    from kubesched.scheduler.config.documents.durations import Duration
    from kubesched.scheduler.config.documents.fielderrors import FieldError, Path
    from kubesched.scheduler.config.loading import defaults, load
    from kubesched.scheduler.config.printing import as_json, as_yaml, effective
    from kubesched.scheduler.config.releases.gates import Gates
    from kubesched.scheduler.config.releases.versions import NEWEST, OLDEST_RECORDED, Behaviour, Version
    from kubesched.scheduler.config.types import Configuration, Configured, Extender, Profile

_NAMES = {
    "args": ("Args",),
    "catalogue": ("POINTS", "Catalogue", "Known"),
    "configz": ("from_configz",),
    "documents.durations": ("Duration",),
    "documents.fielderrors": ("FieldError", "Path"),
    "releases.gates": ("Gates",),
    "loading": ("defaults", "load"),
    "printing": ("as_json", "as_yaml", "effective"),
    "types": ("Configuration", "Configured", "Extender", "Profile"),
    "releases.versions": ("NEWEST", "OLDEST_RECORDED", "Behaviour", "Version"),
}
_WHERE = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}

__all__ = [
    "NEWEST",
    "OLDEST_RECORDED",
    "POINTS",
    "Args",
    "Behaviour",
    "Catalogue",
    "Configuration",
    "Configured",
    "Duration",
    "Extender",
    "FieldError",
    "Gates",
    "Known",
    "Path",
    "Profile",
    "Version",
    "as_json",
    "as_yaml",
    "defaults",
    "effective",
    "from_configz",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_WHERE[name]), name)
    return value
