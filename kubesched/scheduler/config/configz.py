"""The /configz page of a running scheduler as a document that can be loaded.

kube-scheduler prints its internal type there, with Go's field names (`SchedulerName`); kubesched prints the v1 document. Both
are read. The listed plugins are complete, so the result disables the defaults (`multiPoint.disabled: [*]`).
"""

from __future__ import annotations

import json
from typing import Any

from kubesched.errors import ConfigError
from kubesched.scheduler.config.types import API_VERSION, KIND

_KEPT = ("percentageOfNodesToScore", "parallelism", "profiles")


def from_configz(text: str) -> tuple[str, int]:
    """Return a document with the profiles of a /configz page, and the number of its extenders, which are left out."""
    try:
        page = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError("", f"not the answer of a /configz: {error}") from error
    shown = page.get("componentconfig") if isinstance(page, dict) else None
    if not isinstance(shown, dict):
        raise ConfigError("", 'not the answer of a scheduler\'s /configz: there is no object "componentconfig" in it')
    # The internal type has no wire names: kube-scheduler prints `{"Profiles": [{"SchedulerName": ...}]}`. The first letter
    # tells which form a key has.
    found = _as_in_v1(shown)
    profiles = found.get("profiles")
    if not isinstance(profiles, list) or not profiles or not all(isinstance(profile, dict) for profile in profiles):
        raise ConfigError("componentconfig.profiles", "a list of profiles is expected")
    kept = {name: found[name] for name in _KEPT if found.get(name) is not None}
    kept["profiles"] = [_complete(profile) for profile in profiles]
    extenders = found.get("extenders")
    document = {"apiVersion": API_VERSION, "kind": KIND, **kept}
    return json.dumps(document), len(extenders) if isinstance(extenders, list) else 0


def _as_in_v1(value: Any) -> Any:
    """Return a value with wire names: `SchedulerName` becomes `schedulerName`. A field with a wire name is kept with everything
    below it, which may have keys of users."""
    if isinstance(value, list):
        return [_as_in_v1(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name if name[:1].islower() else name[:1].lower() + name[1:]: each if name[:1].islower() else _as_in_v1(each)
        for name, each in value.items()
        if each is not None
    }


def _complete(profile: dict[str, Any]) -> dict[str, Any]:
    """Return a profile with the plugins that it lists and no defaults."""
    plugins = profile.get("plugins")
    if not isinstance(plugins, dict):
        return profile
    # Without the `*` the defaults of our release would be merged in again, with those that the running scheduler had disabled.
    general = plugins.get("multiPoint")
    enabled = general.get("enabled") if isinstance(general, dict) else None
    return {**profile, "plugins": {**plugins, "multiPoint": {"enabled": enabled or [], "disabled": [{"name": "*"}]}}}
