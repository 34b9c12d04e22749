"""A cluster as it is at one moment: read off an API server, or out of a file.

In: a connection, or the lines of an inbox log. Out: the API objects; an engine that believes in them; lines again. Written
down, a captured cluster is an inbox log that ends when everything has been listed: `replay` plays it, and of a longer log
the state at its end is taken. Nothing here ever writes to a cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from kubesched.errors import ApiError, Forbidden, NotFound, SchedulerError
from kubesched.kube.api import (
    INFO,
    LimitRange,
    Node,
    Pod,
    PriorityClass,
    ResourceClaimTemplate,
    ResourceQuota,
    RuntimeClass,
    codec,
)
from kubesched.kube.client import Connection, Served, Watched, discover, list_objects, row_of, watch_set
from kubesched.scheduler import config
from kubesched.scheduler.config import Version, nearest_recorded, text_of
from kubesched.scheduler.engine import INBOX_LOG_FORMAT, Engine, Ports, StillClock, assemble
from kubesched.scheduler.framework import Registry
from kubesched.tools.simulation.replay import entries_of

_encode = msgspec.json.Encoder().encode
_MADE_WITH = [
    row_of(PriorityClass, "new pods can name only the priority classes of every cluster"),
    row_of(LimitRange, "new pods get no defaults of their namespace"),
    row_of(ResourceQuota, "quotas stop no new pod"),
    row_of(RuntimeClass, "new pods get no overhead"),
    row_of(ResourceClaimTemplate, "new pods get no resource claims"),
]
APPLIED_MANIFEST = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(slots=True)
class Captured:
    """API objects, the time at which they were so, and the seed that ties are broken with."""

    at: float
    objects: list[Any] = field(default_factory=list)
    seed: int = 0
    release: Version | None = None
    """The release of the cluster, by which its pods are decided; None where nobody says."""

    def of(self, type_: type[Any]) -> list[Any]:
        """Return the objects of one kind."""
        return [obj for obj in self.objects if isinstance(obj, type_)]

    def without_applied_manifests(self) -> Captured:
        """Return the same without what `kubectl apply` remembers beside each object: nothing decides by it."""
        return replace(self, objects=[_without_manifest(obj) for obj in self.objects])

    def lines(self, shadow: Mapping[str, Any] | None = None) -> Iterator[bytes]:
        """Yield the lines of an inbox log that says the same; the first tells what `shadow` found there, if it did."""
        about: dict[str, Any] = {"release": text_of(self.release)} if self.release is not None else {}
        if shadow is not None:
            about["shadow"] = shadow
        yield (
            _encode({"at": self.at, "format": INBOX_LOG_FORMAT, "seed": self.seed, "objects": len(self.objects), **about})
            + b"\n"
        )
        for obj in self.objects:
            yield _encode({"at": self.at, "kind": INFO[type(obj)].kind, "object": codec.to_dict(obj)}) + b"\n"

    def engine(
        self,
        configuration: config.Configuration,
        gates: config.Gates,
        *,
        registry: Registry | None = None,
        ports: Ports | None = None,
    ) -> Engine:
        """Return an engine that believes in all of it, with pending pods in its queue; by default it writes to nobody, and
        its time stands still."""
        ports = ports or Ports(clock=StillClock(self.at), seed=self.seed)
        engine = assemble(configuration, gates, ports, registry=registry)
        for obj in sorted(self.objects, key=after_what_it_needs):
            engine.intake.apply(INFO[type(obj)].kind, None, obj)
        return engine


def _without_manifest(obj: Any) -> Any:
    annotations = obj.metadata.annotations
    if APPLIED_MANIFEST not in annotations:
        return obj
    kept = {name: value for name, value in annotations.items() if name != APPLIED_MANIFEST}
    return msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, annotations=kept))


def after_what_it_needs(obj: Any) -> int:
    """Sort pods last, and nodes before them: a pod is judged when it is queued."""
    return 2 if isinstance(obj, Pod) else 1 if isinstance(obj, Node) else 0


def read_captured(lines: Iterable[bytes]) -> Captured:
    """Return the state at the end of an inbox log; raise SchedulerError for lines that are not of one.

    A snapshot says at its beginning how many objects it has, so that one that was cut off is not taken for a smaller
    cluster; of a log, whose writer may have been killed, there is no saying.
    """
    captured = Captured(0.0)
    known: dict[tuple[str, str, str], Any] = {}
    names: dict[str, tuple[str, str, str]] = {}
    entries = entries_of(lines)
    announced, captured.release = entries[0].objects, entries[0].emulated_release
    n_found = sum(bool(entry.object) for entry in entries)
    if isinstance(announced, int) and n_found < announced:
        raise SchedulerError(f"the snapshot is cut off: {n_found} of its {announced} objects are there")
    for entry in entries:
        captured.at = entry.at
        captured.seed = entry.seed if entry.seed is not None else captured.seed
        if entry.bound in names:  # the API server may not have said so before the log ended
            pod = known[names[entry.bound]]
            spec = msgspec.structs.replace(pod.spec, node_name=pod.spec.node_name or entry.node)
            known[names[entry.bound]] = msgspec.structs.replace(pod, spec=spec)
        if not entry.kind:
            continue
        key, obj = entry.key, entry.decoded()
        known.pop(key, None)
        if obj is not None:
            known[key] = obj
            if entry.kind == "Pod":
                names[obj.metadata.uid] = key
    captured.objects = list(known.values())
    return captured


async def capture(
    connection: Connection, gates: config.Gates, at: float, warn: Callable[[str], None] = lambda text: None
) -> Captured:
    """Return everything that a scheduler reads of a cluster, and what new pods are made with. What is not served, or may not be
    listed, is left out, and said, unless nothing can be decided without it."""
    enabled = [name for name, is_on in gates.states.items() if is_on]
    rows = [row for row in watch_set(enabled) if row.type is not None] + _MADE_WITH
    served = await discover(connection, {version for row in rows for version in row.api_versions})
    found = await asyncio.gather(*(_listed(connection, row, served) for row in rows))
    _say_left_out(dict(zip(rows, found, strict=True)), warn)
    return Captured(
        at, [obj for listed in found if isinstance(listed, list) for obj in listed], release=nearest_recorded(served.minor)
    )


async def _listed(connection: Connection, row: Watched, served: Served) -> list[Any] | ApiError | str:
    """Return the objects of a kind, or why it is left out: the refusal, or the versions in which it is not served."""
    assert row.type is not None
    version = served.version_of(row)
    if version is None:
        if row.is_indispensable:
            raise SchedulerError(f"the server does not serve {row.plural}: is it a Kubernetes API server?")
        return " or ".join(row.api_versions)
    try:
        return list(await list_objects(connection, row.type, api_version=version, field_selector=row.field_selector))
    except (Forbidden, NotFound) as error:
        if row.is_indispensable:
            raise
        return error
    except ApiError as error:
        raise SchedulerError(f"{row.plural} cannot be listed: {error}") from error


def _say_left_out(found: Mapping[Watched, list[Any] | ApiError | str], warn: Callable[[str], None]) -> None:
    """Say what is left out and what that means, in one line for each reason: an older server lacks several kinds at once."""
    by_reason: dict[str, list[str]] = {}
    refused = next((error for error in found.values() if isinstance(error, ApiError)), None)
    for row, listed in found.items():
        if not isinstance(listed, list):
            reason = f"the server does not serve {listed}" if isinstance(listed, str) else f"{refused}"
            by_reason.setdefault(reason, []).append(f"{row.plural} ({row.without})")
    for reason, left_out in by_reason.items():
        warn(f"left out are {', '.join(left_out)}: {reason}")
