"""What the HTTP face is made of: values and callables that the program hands in. The face knows no engine by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from aiohttp import web
from prometheus_client import CollectorRegistry

from kubesched.scheduler.cluster import PodView
from kubesched.server.web.access.authentication import Authenticator
from kubesched.server.web.access.authorization import Authorizer
from kubesched.server.web.health import PING, Check
from kubesched.server.web.zpages import About


class Gates(Protocol):
    """Which features are on."""

    def is_enabled(self, name: str, /) -> bool:
        """Return whether a gate is on."""
        ...


@dataclass(frozen=True, slots=True)
class WebParts:
    """Everything that is served, and whom it is served to."""

    registry: CollectorRegistry
    gates: Gates
    about: About
    healthz: Sequence[Check] = (PING,)
    livez: Sequence[Check] = (PING,)
    readyz: Sequence[Check] = ()
    reset_metrics: Callable[[], None] = lambda: None
    pods: Callable[[], Iterable[PodView]] = lambda: ()
    is_leader: Callable[[], bool] = lambda: True
    configz: Callable[[], Mapping[str, Any]] = dict  # the effective configuration, as `config.effective` gives it
    flags: Mapping[str, str] = field(default_factory=dict)
    has_profiling: bool = True
    has_contention_profiling: bool = True
    authenticator: Authenticator | None = None  # None: everybody is anonymous
    authorizer: Authorizer | None = None  # None: everything is refused
    extra_routes: Sequence[web.AbstractRouteDef] = ()  # the page, say; behind the same doors as all the rest
    open_paths: frozenset[str] = frozenset()  # those of them that are for everybody
