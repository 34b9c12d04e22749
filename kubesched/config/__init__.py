"""The configuration room: KubeSchedulerConfiguration files, feature gates and plugin arguments.

In: text and flags. Out: frozen values that the other rooms can rely on without asking again. It knows plugins by
name, by extension point and by the type of their arguments (`Catalogue`), never as classes, and it opens no socket.

    load(text or path, gates=..., registry=...) -> Configuration      effective(configuration) -> document
"""

from kubesched.config.args import Args, ArgsRegistry
from kubesched.config.catalogue import POINTS, Catalogue, Known, in_tree
from kubesched.config.configz import from_configz
from kubesched.config.durations import Duration
from kubesched.config.fielderrors import FieldError, Path
from kubesched.config.gates import Gates
from kubesched.config.loading import defaults, load
from kubesched.config.printing import as_json, as_yaml, effective
from kubesched.config.types import Configuration, Configured, Extender, Profile
from kubesched.config.versions import NEWEST, OLDEST_RECORDED, Behaviour, Version

__all__ = [
    "NEWEST",
    "OLDEST_RECORDED",
    "POINTS",
    "Args",
    "ArgsRegistry",
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
    "in_tree",
    "load",
]
