"""Writes are sent as the API expects them, and a lost answer is looked up before anything is sent again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from client_fakes import BOUND, FakeChance, FakeConnection, broken, pod, status

from kubesched.errors import AlreadyExists, AnswerLost, Conflict, Forbidden, NotFound, SchedulerError, ServerFault, Unreachable
from kubesched.kube.api import codec
from kubesched.kube.api.meta import ObjectMeta
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.storage import PersistentVolumeClaim
from kubesched.kube.api.workload import PodGroup
from kubesched.kube.client.informers.decoding import Decoder
from kubesched.kube.client.informers.resources import WATCH_SET
from kubesched.kube.client.leases.fencing import LeaseLost
from kubesched.kube.client.writes.writer import Writer

WEB = codec.decode_as(Pod, codec.encode(pod("web", 7)))
PATH = "/api/v1/namespaces/a/pods/web"
DONE = b'{"kind":"Pod","metadata":{"name":"web"},"status":{}}'


class Desk:
    """A writer on a scripted connection."""

    def __init__(self, *replies: Any) -> None:
        self.connection = FakeConnection()
        self.connection.replies = list(replies)
        self.clock = self.connection.clock
        self.writer = Writer(self.connection, FakeChance())  # type: ignore[arg-type]

    async def bind(self) -> None:
        await self.clock.run(self.writer.bind(WEB, "n1"))

    @property
    def sent(self) -> list[str]:
        return [f"{method} {path}" for method, path, _ in self.connection.requests]


async def test_a_binding_names_the_pod_its_uid_and_the_node() -> None:
    desk = Desk(BOUND)
    await desk.bind()
    assert desk.connection.requests == [
        (
            "POST",
            f"{PATH}/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "web", "namespace": "a", "uid": "uid-web"},
                "target": {"kind": "Node", "name": "n1"},
            },
        )
    ]


FOUND_ON = [
    ("a page of a proxy, and the pod went elsewhere", b"<html>welcome</html>", "n2", Conflict, 2),
    ("a page of a proxy, and the pod is bound", b"<html>welcome</html>", "n1", None, 2),
    ("an empty answer to a binding that was carried out", b"", "n1", None, 2),
    ("an answer about something else", b'{"kind":"Pod","metadata":{"name":"web"}}', "n1", None, 2),
    ("a refusal with the code of a success", b'{"kind":"Status","status":"Failure"}', "n1", None, 2),
    ("a lost answer to a binding that was carried out", broken(), "n1", None, 2),
    ("a lost answer, and the pod went elsewhere", broken(), "n2", Conflict, 2),
    ("a conflict with our own binding, sent twice on the way", status(409, "Conflict"), "n1", None, 2),
    ("a conflict with somebody else's binding", status(409, "Conflict"), "n2", Conflict, 2),
    ("a conflict because of a scheduling gate", status(409, "Conflict"), "", Conflict, 2),
    ("a gateway's time-out to a binding that was carried out", status(504, "Timeout"), "n1", None, 2),
    ("a server's fault that bound nothing", status(500, "InternalError"), "", ServerFault, 2),
]


@pytest.mark.parametrize(("answer", "node", "raised", "n_sent"), [case[1:] for case in FOUND_ON],
                         ids=[case[0] for case in FOUND_ON])  # fmt: skip
async def test_doubt_is_settled_by_looking(answer: Any, node: str, raised: Any, n_sent: int) -> None:
    desk = Desk(answer, pod("web", 9, node=node))
    if raised is None:
        await desk.bind()
    else:
        with pytest.raises(raised):
            await desk.bind()
    assert desk.sent == [f"POST {PATH}/binding", f"GET {PATH}"][:n_sent]


async def test_an_answer_that_says_nothing_is_no_binding() -> None:
    desk = Desk(b"{}", pod("web", 9), b"{}", pod("web", 9), BOUND)
    await desk.bind()
    assert desk.sent == [f"POST {PATH}/binding", f"GET {PATH}"] * 2 + [f"POST {PATH}/binding"]


async def test_what_is_looked_up_must_be_the_pod() -> None:
    desk = Desk(b"[]", b"<html>", b"{}", pod("web", 9, node="n1"))
    await desk.bind()
    assert desk.sent == [f"POST {PATH}/binding", *[f"GET {PATH}"] * 3]


async def test_the_binding_itself_is_an_answer_too() -> None:
    desk = Desk({"kind": "Binding", "metadata": {"name": "web"}})
    await desk.bind()
    assert len(desk.sent) == 1


async def test_a_lost_binding_that_never_arrived_is_sent_again() -> None:
    desk = Desk(broken(), pod("web", 9), broken(), pod("web", 9), BOUND)
    await desk.bind()
    assert desk.sent == [f"POST {PATH}/binding", f"GET {PATH}"] * 2 + [f"POST {PATH}/binding"]


async def test_bindings_that_keep_getting_lost_are_given_up_after_three() -> None:
    desk = Desk(*([broken(), pod("web", 9)] * 3))
    with pytest.raises(AnswerLost):
        await desk.bind()
    assert len(desk.sent) == 6


async def test_looking_waits_for_the_server_to_come_back() -> None:
    away = Unreachable("connection refused")
    desk = Desk(broken(), away, away, status(503, "ServiceUnavailable"), pod("web", 9, node="n1"))
    await desk.bind()
    assert desk.clock.slept == [0.1, 0.5, 2.0]
    desk = Desk(broken(), *[away] * 20, pod("web", 9, node="n1"))
    await desk.bind()
    assert desk.clock.slept[-2:] == [10.0, 10.0]


@pytest.mark.parametrize("found", [status(404, "NotFound"), pod("web", 9, uid="younger", node="n1")])
async def test_a_pod_that_is_gone_or_replaced_was_not_bound(found: Any) -> None:
    with pytest.raises(NotFound):
        await Desk(broken(), found).bind()


@pytest.mark.parametrize(
    ("answer", "raised"),
    [(status(403, "Forbidden"), Forbidden), (status(404, "NotFound"), NotFound), (Unreachable("away"), Unreachable)],
)
async def test_what_is_certain_is_not_looked_up(answer: Any, raised: type[Exception]) -> None:
    desk = Desk(answer)
    with pytest.raises(raised):
        await desk.bind()
    assert len(desk.sent) == 1


async def test_a_status_patch_is_sent_as_it_stands() -> None:
    desk = Desk(DONE)
    await desk.writer.patch_pod_status(WEB, {"nominatedNodeName": None, "conditions": [{"type": "PodScheduled"}]})
    assert desk.connection.requests == [
        ("PATCH", f"{PATH}/status", {"status": {"nominatedNodeName": None, "conditions": [{"type": "PodScheduled"}]}})
    ]


async def test_the_status_of_any_other_object_is_patched_where_it_lies_in_the_version_it_came_in() -> None:
    desk = Desk(DONE, DONE)
    watched = next(row for row in WATCH_SET if row.type is PodGroup)
    versions = ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2")
    for version in versions:
        page = Decoder(watched, version).page(b'{"items": [{"metadata": {"name": "train", "namespace": "team-a"}}]}')
        await desk.writer.patch_status(page.items[0], {"conditions": []})
    assert desk.connection.requests == [
        ("PATCH", f"/apis/{version}/namespaces/team-a/podgroups/train/status", {"status": {"conditions": []}})
        for version in versions
    ]


PASSING = [status(500, "InternalError"), status(503, "ServiceUnavailable"), status(409, "Conflict"), Unreachable("x")]


@pytest.mark.parametrize("trouble", PASSING)
async def test_a_status_patch_is_tried_four_times(trouble: Any) -> None:
    desk = Desk(trouble, trouble, trouble, DONE)
    await desk.clock.run(desk.writer.patch_pod_status(WEB, {}))
    assert desk.clock.slept == [0.010, 0.050, 0.250]
    desk = Desk(*[trouble] * 4)
    with pytest.raises(type(trouble)):
        await desk.clock.run(desk.writer.patch_pod_status(WEB, {}))


@pytest.mark.parametrize("final", [status(404, "NotFound"), status(422, "Invalid"), status(504, "Timeout")])
async def test_a_status_patch_that_was_refused_is_not_repeated(final: Any) -> None:
    desk = Desk(final)
    with pytest.raises(type(final)):
        await desk.writer.patch_pod_status(WEB, {})


async def test_a_deletion_names_the_uid() -> None:
    desk = Desk(DONE)
    await desk.writer.delete_pod(WEB)
    [(method, path, body)] = desk.connection.requests
    assert (method, path, body["preconditions"]) == ("DELETE", PATH, {"uid": "uid-web"})


async def test_deleting_what_is_gone_says_so_and_a_lost_deletion_is_repeated() -> None:
    with pytest.raises(NotFound):
        await Desk(status(404, "NotFound")).writer.delete_pod(WEB)
    desk = Desk(broken(), status(404, "NotFound"))
    await desk.clock.run(desk.writer.delete_pod(WEB))


@pytest.mark.parametrize(
    ("found", "raised"),
    [
        (pod("web", 9, uid="younger"), NotFound),
        (status(404, "NotFound"), NotFound),
        (pod("web", 9), Conflict),
    ],
    ids=["its name is another's", "it went meanwhile", "it is still there"],
)
async def test_a_deletion_that_conflicts_is_settled_by_looking(found: Any, raised: type[Exception]) -> None:
    desk = Desk(status(409, "Conflict"), found)
    with pytest.raises(raised):
        await desk.writer.delete_pod(WEB)
    assert desk.sent == [f"DELETE {PATH}", f"GET {PATH}"]


PAGE = b"<html>welcome</html>"


@pytest.mark.parametrize("page", [PAGE, b"", b"{}", b'{"kind":"Status","status":"Failure"}'])
async def test_a_page_of_a_proxy_changes_and_deletes_nothing(page: bytes) -> None:
    desk = Desk(page, DONE, page, DONE, page, page, page, page)
    await desk.clock.run(desk.writer.patch_pod_status(WEB, {}))
    await desk.clock.run(desk.writer.delete_pod(WEB))
    assert desk.sent == [f"PATCH {PATH}/status"] * 2 + [f"DELETE {PATH}"] * 2
    with pytest.raises(AnswerLost, match="neither a Status of success nor an object"):
        await desk.clock.run(desk.writer.delete_pod(WEB))


CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "a", "uid": "u", "resourceVersion": "5", "managedFields": [{"a": 1}]},
    "spec": {"volumeName": "", "future": True},
}


def claim(volume: str, version: str = "5") -> PersistentVolumeClaim:
    document = {**CLAIM, "spec": {"volumeName": volume}, "metadata": {**CLAIM["metadata"], "resourceVersion": version}}  # type: ignore[dict-item]
    return codec.convert(document, PersistentVolumeClaim)


def stored(volume: str, version: str) -> dict[str, Any]:
    meta = {**CLAIM["metadata"], "resourceVersion": version}  # type: ignore[dict-item]
    return {**CLAIM, "metadata": meta, "spec": {**CLAIM["spec"], "volumeName": volume}}  # type: ignore[dict-item]


async def test_replacing_an_object_keeps_what_we_do_not_know() -> None:
    desk = Desk(CLAIM, stored("v", "6"))
    updated = await desk.writer.update(claim("v"))
    assert updated.metadata.resource_version == "6"
    method, path, body = desk.connection.requests[1]
    assert (method, path) == ("PUT", "/api/v1/namespaces/a/persistentvolumeclaims/data")
    assert body["spec"] == {"volumeName": "v", "future": True}
    assert body["metadata"] == CLAIM["metadata"]


async def test_replacing_a_status_goes_to_the_subresource() -> None:
    desk = Desk(CLAIM, stored("v", "6"))
    await desk.writer.update(claim("v"), "status")
    assert desk.sent[1].endswith("/data/status")


async def test_an_object_that_changed_meanwhile_is_a_conflict_and_nothing_is_sent() -> None:
    desk = Desk(stored("", "8"))
    with pytest.raises(Conflict, match='persistentvolumeclaims "data": the object has been modified') as raised:
        await desk.writer.update(claim("v"))
    assert len(desk.sent) == 1 and raised.value.latest.metadata.resource_version == "8"


async def test_a_lost_replacement_is_compared_with_what_is_there() -> None:
    desk = Desk(CLAIM, broken(), stored("v", "6"))
    assert (await desk.writer.update(claim("v"))).metadata.resource_version == "6"
    desk = Desk(CLAIM, broken(), CLAIM, stored("v", "6"))
    assert (await desk.writer.update(claim("v"))).metadata.resource_version == "6"
    assert [line.split()[0] for line in desk.sent] == ["GET", "PUT", "GET", "PUT"]
    desk = Desk(CLAIM, broken(), stored("other", "6"))
    with pytest.raises(Conflict):
        await desk.writer.update(claim("v"))
    desk = Desk(*[CLAIM, broken()] * 3, CLAIM)
    with pytest.raises(AnswerLost):
        await desk.writer.update(claim("v"))


DOUBTS = [
    ("a lost answer", broken()),
    ("a page of a proxy", b"<html>welcome</html>"),
    ("an empty object", b"{}"),
    ("a gateway's time-out", status(504, "Timeout")),
    ("a conflict with our own write, sent twice on the way", status(409, "Conflict")),
]


@pytest.mark.parametrize("answer", [case[1] for case in DOUBTS], ids=[case[0] for case in DOUBTS])
async def test_a_replacement_in_doubt_is_looked_up_until_the_server_answers(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    refusals = (status(503, "Unavailable"), status(401, "Unauthorized"), status(429, "TooManyRequests"))
    away = (Unreachable("connection refused"), *refusals, b"<html>")
    desk = Desk(CLAIM, answer, *away * 4, stored("v", "6"))
    assert (await desk.clock.run(desk.writer.update(claim("v")))).metadata.resource_version == "6"
    assert [line.split()[0] for line in desk.sent] == ["GET", "PUT", *["GET"] * 21]
    assert caplog.messages[-5].endswith("/data is not known: connection refused; asking again in 10 s")
    assert desk.clock.slept[-2:] == [10.0, 10.0]


@pytest.mark.parametrize("answer", [status(500, "InternalError"), status(409, "Conflict")])
async def test_a_refused_replacement_that_changed_nothing_is_not_sent_again(answer: Any) -> None:
    desk = Desk(CLAIM, answer, CLAIM)
    with pytest.raises(type(answer)):
        await desk.writer.update(claim("v"))
    assert [line.split()[0] for line in desk.sent] == ["GET", "PUT", "GET"]


async def test_a_fault_after_which_the_object_is_another_is_a_conflict() -> None:
    with pytest.raises(Conflict) as raised:
        await Desk(CLAIM, status(500, "InternalError"), stored("other", "6")).writer.update(claim("v"))
    assert raised.value.latest.spec.volume_name == "other"


async def test_creating_returns_the_stored_object() -> None:
    desk = Desk(stored("v", "6"))
    fresh = PersistentVolumeClaim(metadata=ObjectMeta(name="data", namespace="a"))
    assert (await desk.writer.create(fresh)).uid == "u"
    [(method, path, body)] = desk.connection.requests
    assert (method, path) == ("POST", "/api/v1/namespaces/a/persistentvolumeclaims")
    assert body == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "a"},
    }


async def test_a_lost_creation_is_looked_up() -> None:
    defaulted = stored("v", "6")
    defaulted["spec"]["volumeMode"] = "Filesystem"
    desk = Desk(broken(), defaulted)
    assert (await desk.writer.create(claim("v", ""))).metadata.resource_version == "6"
    desk = Desk(broken(), status(404, "NotFound"), stored("v", "6"))
    assert (await desk.writer.create(claim("v", ""))).metadata.resource_version == "6"
    with pytest.raises(AlreadyExists):
        await Desk(broken(), stored("other", "6")).writer.create(claim("v", ""))
    with pytest.raises(AlreadyExists):
        await Desk(status(409, "AlreadyExists")).writer.create(claim("v", ""))


async def test_deleting_an_object_names_its_place() -> None:
    desk = Desk(DONE)
    await desk.writer.delete(claim("v"))
    assert desk.sent == ["DELETE /api/v1/namespaces/a/persistentvolumeclaims/data"]


async def test_a_status_that_has_to_be_sent_again_does_not_arrive_after_the_binding() -> None:
    desk = Desk(status(503, "ServiceUnavailable"), DONE, BOUND)
    patched = asyncio.ensure_future(desk.writer.patch_pod_status(WEB, {"conditions": []}))
    bound = asyncio.ensure_future(desk.writer.bind(WEB, "n1"))
    await desk.clock.run(asyncio.gather(patched, bound))
    assert desk.sent == [f"PATCH {PATH}/status", f"PATCH {PATH}/status", f"POST {PATH}/binding"]


async def fails() -> None:
    raise SchedulerError("extender at http://x: no answer within 5 s")


async def succeeds() -> None:
    return None


async def test_an_extender_that_fails_may_have_bound_the_pod_all_the_same() -> None:
    await Desk().writer.let_bind(WEB, "n1", succeeds)
    desk = Desk(pod("web", 8, node="n1"))
    await desk.clock.run(desk.writer.let_bind(WEB, "n1", fails))
    assert desk.sent == [f"GET {PATH}"]
    for node in ("", "n2"):
        with pytest.raises(SchedulerError, match="no answer within 5 s"):
            await Desk(pod("web", 8, node=node)).writer.let_bind(WEB, "n1", fails)


async def test_an_extender_binds_nothing_for_a_leader_whose_lease_may_have_run_out() -> None:
    desk, asked = Desk(), []

    async def act() -> None:
        asked.append("bind")

    desk.connection.leads = False
    with pytest.raises(LeaseLost):
        await desk.writer.let_bind(WEB, "n1", act)
    assert not asked
