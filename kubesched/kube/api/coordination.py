"""Leases: who leads, since when, and how long the word holds."""

from __future__ import annotations

from kubesched.kube.api.meta import TopLevel, Wire, always


class LeaseSpec(Wire, kw_only=True):
    """The holder and its times, with microseconds."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(TopLevel, kw_only=True):
    """A lock with an expiry."""

    api_version: str = always("coordination.k8s.io/v1")
    kind: str = always("Lease")
    spec: LeaseSpec = LeaseSpec()
