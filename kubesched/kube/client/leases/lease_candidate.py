"""The LeaseCandidate of this replica, from which a controller chooses the leader (gate CoordinatedLeaderElection).

No replica takes the lease itself. A controller in the control plane writes the best candidate into it: the one that emulates
the oldest release. Before that it sets spec.pingTime, and only candidates that answer with a newer spec.renewTime within five
seconds count. This file creates the object, renews it every five minutes and answers pings. It never touches the lease
(`leader_election.py`).
"""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import quote

import msgspec

from kubesched.errors import MalformedObject, NotFound, SchedulerError
from kubesched.kube.api import codec, format_micro_time, parse_time
from kubesched.kube.client.api_errors import advice
from kubesched.kube.client.connection import Connection
from kubesched.kube.client.informers.resources import collection_path
from kubesched.kube.client.timing import SYSTEM_CLOCK, ClientClock, LogThrottle

API_VERSION, KIND, PLURAL = "coordination.k8s.io/v1beta1", "LeaseCandidate", "leasecandidates"
STRATEGY = "OldestEmulationVersion"
LOOK_SECONDS = 2.0
"""How often we look for a ping. The controller gives five seconds to answer. kube-scheduler watches the object, which is a
second faster and one more thing that can break."""
RENEW_SECONDS = 300.0

log = logging.getLogger(__name__)


class LeaseCandidate:
    """The LeaseCandidate object of this replica."""

    def __init__(
        self,
        connection: Connection,
        identity: str,
        lease: str,
        *,
        binary_version: str,
        emulation_version: str,
        namespace: str,
        clock: ClientClock = SYSTEM_CLOCK,
    ) -> None:
        self._connection = connection
        self._collection = collection_path(API_VERSION, PLURAL, namespace)
        self._path = f"{self._collection}/{quote(identity, safe='')}"
        self._identity, self._namespace = identity, namespace
        self._wanted = {
            "leaseName": lease,
            "binaryVersion": binary_version,
            "emulationVersion": emulation_version,
            "strategy": STRATEGY,
        }
        self._clock = clock
        self._renewed_at = float("-inf")
        self._log_throttle = LogThrottle(clock)

    async def run(self) -> None:
        """Be a candidate until cancelled."""
        while True:
            try:
                await self._stand()
                self._log_throttle.settle()
            except SchedulerError as error:
                if self._log_throttle.is_worth_saying(text := advice(error)):
                    log.warning("lease candidate %s/%s: %s; trying again", self._namespace, self._identity, text)
            await self._clock.sleep(LOOK_SECONDS)

    async def _stand(self) -> None:
        try:
            found = codec.decode_json(await self._connection.request("GET", self._path))
        except NotFound:
            metadata = {"name": self._identity, "namespace": self._namespace}
            fresh = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": self._wanted}
            # Also if it was deleted while we ran. Without the object the controller would not choose us.
            await self._write("POST", self._collection, fresh)
            return
        if not isinstance(found, dict) or not isinstance(found.get("spec"), dict):
            raise MalformedObject(f"lease candidate {self._namespace}/{self._identity}", "spec", found, "expected an object")
        if self._is_pinged(found["spec"]) or self._clock.monotonic() - self._renewed_at >= RENEW_SECONDS:
            await self._write("PUT", self._path, found)

    @staticmethod
    def _is_pinged(spec: dict[str, Any]) -> bool:
        pinged, renewed = spec.get("pingTime"), spec.get("renewTime")
        return isinstance(pinged, str) and (not isinstance(renewed, str) or parse_time(pinged) > parse_time(renewed))

    async def _write(self, method: str, path: str, candidate: dict[str, Any]) -> None:
        spec = {**candidate["spec"], "renewTime": format_micro_time(self._clock.now())}
        await self._connection.request(method, path, msgspec.json.encode({**candidate, "spec": spec}))
        self._renewed_at = self._clock.monotonic()
