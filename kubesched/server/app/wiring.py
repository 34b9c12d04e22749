"""What a scheduler is built from, besides its configuration. The command line fills it in, and tests do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from kubesched.kube.client import SYSTEM_CHANCE, SYSTEM_CLOCK, Chance, ClientClock, Connection, CredentialSource
from kubesched.scheduler import config, legacy
from kubesched.scheduler.engine import SHARE, DecisionLog, DecisionSpans
from kubesched.scheduler.framework import Plugin
from kubesched.server.app.extender_client import HttpPoster
from kubesched.telemetry import MetricsSettings

if TYPE_CHECKING:
    from kubesched.server.app.scheduler import Scheduler
    from kubesched.server.options.options import Authentication, Authorization, Serving

DECISION_RECORDS = 10_000


@dataclass(frozen=True, slots=True)
class Face:
    """The options of the HTTP server, from the command line."""

    serving: Serving
    authentication: Authentication
    authorization: Authorization
    flags: Mapping[str, str]
    version: str
    what_if: Callable[[Scheduler, Connection], Iterable[Any]] | None = None
    """Makes the routes of the page's what-if questions, given a connection to read the cluster with."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """What a scheduler is built from, besides its configuration."""

    source: CredentialSource
    gates: config.Gates = field(default_factory=config.Gates.defaults)
    plugins: tuple[type[Plugin], ...] = ()
    seed: int = 0
    max_waiting_seconds: float = 300.0
    owns_process: bool = False
    """Whether this scheduler may tune the garbage collector of the process."""
    assumed_ttl_seconds: float | None = None
    face: Face | None = None
    metrics: MetricsSettings | None = None
    inbox_log: IO[bytes] | None = None
    decision_records: int = DECISION_RECORDS
    """How many decision records are kept; 0 for none."""
    decision_share: float = SHARE
    """Which share of the time may be used for scores in decision records; 1: every record has them."""
    decision_log: DecisionLog | None = None
    decision_spans: DecisionSpans | None = None
    reload: Callable[[], config.Configuration] | None = None
    """Reads the configuration file again; called when `has_changed` says so."""
    has_changed: Callable[[], bool] = lambda: False
    legacy: legacy.LegacyScheduler | None = None
    """A scheduler of an old release, in place of the configured profiles."""
    clock: ClientClock = SYSTEM_CLOCK
    chance: Chance = SYSTEM_CHANCE
    poster: Callable[[], HttpPoster] = HttpPoster
    """Makes the client for extenders."""
    identity: str = ""
    """Our name in the lease, HOST_SOMETHING; empty: a unique one is made."""
