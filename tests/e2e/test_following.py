"""What a scheduler meets in the field, on both control planes: old servers, forgotten history.

Lists come in pages where streams are switched off; a server may serve no devices, no pod groups and no new events; and its
history may end before what we last saw. Clocks that are wrong, and jump, are in tests/chaos.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from control_planes import Api, ControlPlane, Object
from replicas import Replica, Replicas, agree, check_bound_once

N_NODES = 6
PAGED = "--feature-gates=WatchListClient=false"
PATIENT = ("--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=50s", "--leader-elect-retry-period=2s")


async def settle(api: Api, replicas: Replicas, replica: Replica) -> None:
    """Wait until all pods are bound and known, and check that none was bound twice."""
    await api.until_bound(len(await api.pods()))
    await agree(replica, api)
    nodes = (await api.get("/api/v1/nodes"))["items"]
    check_bound_once(await api.pods(), nodes, *(one.witness for one in replicas.all))
    assert replica.is_running, replica.last_words()


@pytest.mark.parametrize("flags", [(), (PAGED,)], ids=["streaming lists", "lists in pages"])
async def test_history_that_is_forgotten_is_listed_again(
    control_plane: ControlPlane, api: Api, replicas: Replicas, flags: tuple[str, ...]
) -> None:
    """While the scheduler is cut off, pods come and go, the history is compacted and the API server starts anew."""
    await api.add_nodes(N_NODES)
    await api.add_pods(0, 20)
    replica = await replicas.start(*PATIENT, *flags)
    await settle(api, replicas, replica)
    lists = replica.witness.lists_of("/api/v1/pods")
    assert all(("sendInitialEvents" in query) != bool(flags) for query in lists) and lists
    assert all(("limit" in query) == bool(flags) for query in lists)
    async with replica.witness.away():
        for number in range(10):
            await api.delete(f"/api/v1/namespaces/default/pods/pod-{number}")
        await api.add_pods(0, 5)  # under their old names, as other pods
        await api.add_pods(20, 20)
        await control_plane.forget_history()
        replica.witness.queries.clear()
    await settle(api, replicas, replica)
    assert replica.says("listing again") and replica.witness.lists_of("/api/v1/pods")


async def test_a_server_that_lacks_whole_groups_is_scheduled_all_the_same(
    control_plane: ControlPlane, api: Api, replicas: Replicas
) -> None:
    await api.add_nodes(N_NODES)
    await api.add_pods(0, 6)
    hidden = ("/apis/resource.k8s.io", "/apis/events.k8s.io", "/apis/scheduling.k8s.io")
    replica = await replicas.start(*PATIENT, "--feature-gates=GenericWorkload=true", hidden=hidden)
    await settle(api, replicas, replica)
    for plural, meaning in (("resourceclaims", "with resource claims are not placed"), ("podgroups", "wait for it")):
        assert any(
            line["msg"].startswith(f"{plural} are left out: the server does not serve them") and line["msg"].endswith(meaning)
            for line in replica.lines()
        ), plural
    await replica.until_says("does not serve events in events.k8s.io/v1; writing them in v1")
    assert not replica.says("cannot follow")

    def is_told(events: list[Object]) -> bool:
        told = [event for event in events if event["reason"] == "Scheduled"]
        return len(told) == 6 and all(event["source"]["component"] == "default-scheduler" for event in told)

    await until_events(api, is_told)


async def until_events(api: Api, is_good: Callable[[list[Object]], bool]) -> None:
    """Wait until the events are as they should be."""
    found: list[Object] = []
    for _ in range(200):
        found = (await api.get("/api/v1/namespaces/default/events"))["items"]
        if is_good(found):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"events: {found}")


async def test_a_role_of_an_older_release_is_enough(control_plane: ControlPlane, api: Api, replicas: Replicas) -> None:
    """Of 1.31 the scheduler's role has no volumeattachments; when they are granted, they are followed."""
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/kubesched"
    rules = (await api.get(role))["rules"]
    await api.patch(role, {"rules": [{**rule, "resources": _without_attachments(rule)} for rule in rules]})
    await api.add_nodes(N_NODES)
    await api.add_pods(0, 6)
    replica = await replicas.start(*PATIENT)
    await settle(api, replicas, replica)
    said = [line["msg"] for line in replica.lines() if "volumeattachments" in line["msg"]]
    assert len(said) == 1 and said[0].startswith(
        "volumeattachments are left out: volumeattachments.storage.k8s.io is forbidden"
    )
    assert said[0].endswith("; attached volumes are not counted")
    await api.patch(role, {"rules": rules})
    await replica.until_says("following volumeattachments again")


def _without_attachments(rule: Object) -> list[str]:
    return [name for name in rule.get("resources", ()) if name != "volumeattachments"]
