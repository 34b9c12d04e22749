"""What is written between the decision and the binding, what is waited for, and what is taken back."""

import asyncio
import gc

import msgspec
import pytest
from dra_world import (
    AWAY,
    DRIVER,
    World,
    allocation,
    claim,
    device,
    device_class,
    node,
    pod,
    post_filter,
    request,
    resource_slice,
)

from kubesched.errors import Conflict, Forbidden
from kubesched.kube.api.meta import Condition, format_time
from kubesched.kube.api.resource import DELETE_PROTECTION_FINALIZER, AllocatedDeviceStatus, ResourceClaim
from kubesched.scheduler.framework import Code, CycleState
from kubesched.scheduler.plugins.dynamic_resources import writes
from kubesched.testing import FakeClock, FakeRecorder, FakeWriter
from kubesched.testing.fakes import settle

TWO = resource_slice("s", ["d1", "d2"], "n1")
GPU = "example.com/gpu"


class Meter:
    def __init__(self):
        self.counted = []

    def __getattr__(self, what):
        return lambda *values: self.counted.append((what, *values))


def world(*objects, **more):
    made = World(*objects, writer=FakeWriter(), clock=FakeClock(jumps=True), recorder=FakeRecorder(), meter=Meter(), **more)
    made.handle.writer.objects = made.store.objects
    return made


async def bind(made, raw, node_name="n1"):
    """Decide, book and prepare the binding; return the status of the last step."""
    assert not made.filter(raw)[node_name]
    assert made.profile.reserve(made.view(raw), node_name, made.state).is_success
    return await made.plugin.pre_bind(made.view(raw), node_name, made.state)


async def test_allocation_and_reservation_are_written():
    made = world(TWO, claim("a", request()))
    assert await bind(made, pod(claims=["a"])) is None
    assert made.handle.writer.lines == ["update a", "update/status a"]
    stored = made.store.objects.get(ResourceClaim, "a", "default")
    assert stored.metadata.finalizers == (DELETE_PROTECTION_FINALIZER,)
    assert [result.device for result in stored.status.allocation.devices.results] == ["d1"]
    assert stored.status.allocation.allocation_timestamp == format_time(made.handle.clock.time)
    (consumer,) = stored.status.reserved_for
    assert (consumer.api_group, consumer.resource, consumer.name, consumer.uid) == ("", "pods", "pod", "uid-pod")
    assert not list(made.book.in_flight()) and len(made.book.exclusive) == 1


async def test_the_cache_is_ahead_of_the_watch():
    made = world(TWO, claim("a", request()))
    made.handle.writer.objects = None
    assert await bind(made, pod(claims=["a"])) is None
    assert made.book.get("a", "default").status.allocation is not None
    assert len(made.book.exclusive) == 1
    assert made.filter(pod("second", ["a"])) == {"n1": ""}


async def test_a_finalizer_that_is_there_is_not_written_again():
    made = world(TWO, claim("a", request(), finalizers=[DELETE_PROTECTION_FINALIZER]))
    await bind(made, pod(claims=["a"]))
    assert made.handle.writer.lines == ["update/status a"]


async def test_an_allocated_claim_is_only_reserved():
    made = world(TWO, claim("a", request(), status=allocation("d1", reserved_for=["other"])))
    assert await bind(made, pod(claims=["a"])) is None
    assert made.handle.writer.lines == ["update/status a"]
    stored = made.store.objects.get(ResourceClaim, "a", "default")
    assert [consumer.name for consumer in stored.status.reserved_for] == ["other", "pod"]


async def test_a_claim_reserved_for_the_pod_is_not_written():
    made = world(TWO, claim("a", request(), status=allocation("d1", reserved_for=["pod"])))
    assert await bind(made, pod(claims=["a"])) is None
    assert made.handle.writer.lines == []


async def test_a_conflict_is_tried_again_on_the_newest_version():
    made = world(TWO, claim("a", request()))
    made.handle.writer.failures = [None, Conflict(409, "Conflict", "changed")]
    assert await bind(made, pod(claims=["a"])) is None
    assert made.handle.writer.lines == ["update a", "update/status a", "update/status a"]
    assert len(made.handle.clock.slept) == 1


def changed_to(latest):
    """Return a conflict with an object that was read since."""
    conflict = Conflict(409, "Conflict", "changed")
    conflict.latest = latest
    return conflict


async def test_a_conflict_with_our_own_write_whose_answer_was_lost_is_no_failure():
    made = world(TWO, claim("a", request()))
    writer, landed = made.handle.writer, []
    writer.objects, update = None, writer.update  # the watch is away

    async def lose_answer(changed, subresource=""):
        stored = await update(changed, subresource)
        if not subresource:
            return stored
        landed.append(stored)
        raise changed_to(stored)

    writer.update = lose_answer
    assert await bind(made, pod(claims=["a"])) is None
    assert writer.lines == ["update a", "update/status a"]
    assert [made.book.get("a", "default")] == landed and not list(made.book.in_flight())


async def test_a_promise_that_is_given_up_after_conflicts_leaves_the_device_to_whom_the_api_has_given_it():
    made = world(TWO, claim("a", request()))
    made.handle.writer.objects = None
    landed = claim("a", request(), resourceVersion="9", status=allocation("d1", reserved_for=["other"]))
    made.handle.writer.failures = [changed_to(landed)] * 9
    assert (await bind(made, pod(claims=["a"]))).code is Code.ERROR
    assert [device.device for device in made.book.exclusive] == ["d1"] and not list(made.book.in_flight())


async def called_off(made, raw):
    """Call a binding off while the write of its claim's status is under way; return the task, which is still waiting for it."""
    assert not made.filter(raw)["n1"]
    assert made.profile.reserve(made.view(raw), "n1", made.state).is_success
    task = asyncio.ensure_future(made.plugin.pre_bind(made.view(raw), "n1", made.state))
    await settle()
    task.cancel("preempted")
    await settle()
    return task


@pytest.mark.parametrize("refusal", [None, Forbidden(403, "Forbidden", "no")], ids=["carried out", "refused"])
async def test_a_pod_that_is_called_off_keeps_its_device_until_it_is_known_what_became_of_the_write(refusal):
    made = world(TWO, claim("a", request(), finalizers=[DELETE_PROTECTION_FINALIZER]))
    writer, raw = made.handle.writer, pod(claims=["a"])
    writer.objects, writer.failures, writer.hold["a"] = None, [refusal], asyncio.Event()
    task = await called_off(made, raw)
    assert len(made.book.exclusive) == 1 and not task.done()
    writer.hold["a"].set()
    with pytest.raises(asyncio.CancelledError):
        await task
    made.profile.unreserve(made.view(raw), "n1", made.state)
    assert len(made.book.exclusive) == (refusal is None) and not list(made.book.in_flight())


async def test_a_write_that_outlasts_its_pod_keeps_the_device(monkeypatch):
    monkeypatch.setattr(writes, "CALLED_OFF_SECONDS", 0.0)
    made = world(TWO, claim("a", request(), finalizers=[DELETE_PROTECTION_FINALIZER]))
    writer, raw = made.handle.writer, pod(claims=["a"])
    writer.objects, writer.hold["a"] = None, asyncio.Event()
    task = await called_off(made, raw)
    with pytest.raises(asyncio.CancelledError):
        await task
    made.profile.unreserve(made.view(raw), "n1", made.state)
    assert len(made.book.exclusive) == 1 and made.book.promised("uid-a") is not None
    writer.hold["a"].set()
    await settle()
    assert len(made.book.exclusive) == 1 and not list(made.book.in_flight())
    assert made.book.get("a", "default").status.allocation is not None


async def test_a_write_that_outlasts_its_pod_fails_silently(monkeypatch):
    monkeypatch.setattr(writes, "CALLED_OFF_SECONDS", 0.0)
    made, said = world(TWO, claim("a", request())), []
    made.handle.writer.failures, made.handle.writer.hold["a"] = [Forbidden(403, "Forbidden", "no")], asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    with pytest.raises(asyncio.CancelledError):
        await (await called_off(made, pod(claims=["a"])))
    made.profile.unreserve(made.view(pod(claims=["a"])), "n1", made.state)
    made.handle.writer.hold["a"].set()
    await settle()
    gc.collect()
    assert not said and not made.book.exclusive


async def test_conflicts_without_end_fail():
    made = world(TWO, claim("a", request()))
    made.handle.writer.failures = [Conflict(409, "Conflict", "changed")] * 9
    status = await bind(made, pod(claims=["a"]))
    assert status.code is Code.ERROR and "add allocation and reservation to claim default/a: changed" in status.message
    assert len(made.handle.writer.lines) == 5 and not made.book.exclusive


BROKEN = [
    (
        "deleted",
        claim("a", request(), resourceVersion="9", deletionTimestamp="2026-01-01T00:00:00Z"),
        "claim default/a got deleted in the meantime",
    ),
    (
        "allocated",
        claim("a", request(), resourceVersion="9", status=allocation("d2")),
        "claim default/a got allocated elsewhere in the meantime",
    ),
]


@pytest.mark.parametrize(("now", "text"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
async def test_a_claim_that_changed_too_much_meanwhile(now, text):
    made = world(TWO, claim("a", request()))
    made.handle.writer.failures = [Conflict(409, "Conflict", "changed")]
    made.handle.clock.at[0] = lambda: made.put(now)
    status = await bind(made, pod(claims=["a"]))
    assert (status.code, status.message) == (Code.ERROR, text)


async def test_a_claim_deallocated_meanwhile():
    made = world(TWO, claim("a", request(), status=allocation("d1")))
    made.handle.writer.failures = [Conflict(409, "Conflict", "changed")]
    made.handle.clock.at[0] = lambda: made.put(claim("a", request(), resourceVersion="9"))
    status = await bind(made, pod(claims=["a"]))
    assert status.message == "claim default/a got deallocated elsewhere in the meantime"


async def test_a_refusal_names_what_was_tried_and_gives_the_devices_back():
    made = world(TWO, claim("a", request()))
    made.handle.writer.failures = [Forbidden(403, "Forbidden", "no")]
    status = await bind(made, pod(claims=["a"]))
    assert (status.code, status.message) == (Code.ERROR, "add finalizer to claim default/a: no")
    assert not made.book.exclusive


def test_without_claims_there_is_nothing_to_do():
    made = world(TWO, claim("a", request()))
    made.filter(pod())
    assert made.plugin.pre_bind_pre_flight(made.view(pod()), "n1", made.state).code is Code.SKIP
    made.filter(pod(claims=["a"]))
    assert made.plugin.pre_bind_pre_flight(made.view(pod(claims=["a"])), "n1", made.state) is None
    assert made.plugin.pre_bind_pre_flight(made.view(pod()), "n1", CycleState()).code is Code.SKIP


# Binding conditions


AWAITED = resource_slice("s", [device("d1", bindingConditions=["ready"], bindingFailureConditions=["broken"])], "n1")


def reported(made, **conditions):
    """Let the driver report conditions of the device of claim a."""
    stored = made.book.get("a", "default")
    told = tuple(Condition(type=name, status=status, reason="Why", message="what") for name, status in conditions.items())
    status = msgspec.structs.replace(
        stored.status, devices=(AllocatedDeviceStatus(driver=DRIVER, pool="p", device="d1", conditions=told),)
    )
    metadata = msgspec.structs.replace(stored.metadata, resource_version=str(int(stored.metadata.resource_version) + 1))
    made.put(msgspec.structs.replace(stored, metadata=metadata, status=status))


async def test_the_pod_waits_until_its_devices_are_ready():
    made = world(AWAITED, claim("a", request()))
    made.handle.clock.at[made.handle.clock.time + 15] = lambda: reported(made, ready="True")
    assert await bind(made, pod(claims=["a"])) is None
    assert made.handle.clock.slept == [5.0, 5.0, 5.0]
    assert made.handle.recorder.events == [
        ("pod", "Normal", "BindingConditionsPending", "Scheduling", "waiting for binding conditions for device on node n1")
    ]
    assert made.handle.meter.counted == [
        ("device_waited", "default-scheduler", DRIVER, "success", 15.0),
        ("device_bound", "default-scheduler", DRIVER, "success"),
    ]


async def test_a_device_that_fails_ends_the_wait():
    made = world(AWAITED, claim("a", request()))
    made.handle.clock.at[0] = lambda: reported(made, broken="True")
    status = await bind(made, pod(claims=["a"]))
    assert (status.code, status.message) == (Code.ERROR, 'device binding failed: claim=a, reason=Why, message="what"')
    assert ("device_bound", "default-scheduler", DRIVER, "failure") in made.handle.meter.counted


async def test_the_wait_has_an_end():
    made = world(AWAITED, claim("a", request()))
    status = await bind(made, pod(claims=["a"]))
    assert status.code is Code.ERROR and status.message.startswith("device binding timeout")
    assert 600 <= sum(made.handle.clock.slept) <= 605
    assert ("device_bound", "default-scheduler", DRIVER, "timeout") in made.handle.meter.counted


async def test_an_allocation_that_did_not_become_ready_is_given_up():
    made = world(AWAITED, claim("a", request()))
    await bind(made, pod(claims=["a"]))
    made.profile.unreserve(made.view(pod(claims=["a"])), "n1", made.state)
    made.handle.clock.time += 10
    assert made.filter(pod(claims=["a"])) == {"n1": "resourceclaim not available on the node"}


# Taking back


async def test_unreserve_takes_the_reservation_back_and_leaves_the_allocation():
    made = world(TWO, claim("a", request()), claim("b", request(), status=allocation("d2", reserved_for=["other"])))
    raw = pod(claims=["a", "b"])
    await bind(made, raw)
    made.handle.writer.calls.clear()
    made.profile.unreserve(made.view(raw), "n1", made.state)
    await asyncio.gather(*made.plugin._errands)
    assert sorted(made.handle.writer.lines) == ["update/status a", "update/status b"]
    for name, left in (("a", []), ("b", ["other"])):
        stored = made.store.objects.get(ResourceClaim, name, "default")
        assert stored.status.allocation is not None
        assert [consumer.name for consumer in stored.status.reserved_for] == left


async def test_post_filter_clears_the_claim():
    made = world(TWO, claim("a", request(), status=AWAY))
    await post_filter(made, pod(claims=["a"])).follow_up()
    stored = made.store.objects.get(ResourceClaim, "a", "default")
    assert stored.status.allocation is None and not made.book.exclusive
    assert made.filter(pod(claims=["a"])) == {"n1": ""}


async def test_a_failed_errand_does_not_spread(caplog):
    made = world(TWO, claim("a", request(), status=AWAY))
    made.handle.writer.failures = [Forbidden(403, "Forbidden", "no")]
    await post_filter(made, pod(claims=["a"])).follow_up()
    assert "deallocate claim default/a: no" in caplog.text


# Extended resources


async def test_the_special_claim_is_created_reserved_and_told_to_the_pod():
    made = world(TWO, device_class("gpu", extendedResourceName=GPU))
    assert await bind(made, pod(requests={GPU: "2"})) is None
    assert made.handle.writer.lines == [
        "create pod-extended-resources-1",
        "update pod-extended-resources-1",
        "update/status pod-extended-resources-1",
        "patch pod",
    ]
    stored = made.store.objects.get(ResourceClaim, "pod-extended-resources-1", "default")
    assert stored.metadata.annotations == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert stored.metadata.owner_references[0].uid == "uid-pod"
    assert len(stored.status.allocation.devices.results) == 2 and len(made.book.exclusive) == 2
    assert made.handle.writer.calls[-1].body == {
        "extendedResourceClaimStatus": {
            "requestMappings": [{"containerName": "c", "resourceName": GPU, "requestName": "container-0-request-0"}],
            "resourceClaimName": "pod-extended-resources-1",
        }
    }
    assert made.handle.meter.counted == [("claim_created", "success")]


async def test_the_devices_stay_booked_until_the_cache_knows_the_claim():
    made = world(TWO, device_class("gpu", extendedResourceName=GPU))
    made.handle.writer.objects = None
    assert await bind(made, pod(requests={GPU: "2"})) is None
    assert sum(made.handle.clock.slept) == 120


async def test_unreserve_deletes_the_special_claim():
    made = world(TWO, device_class("gpu", extendedResourceName=GPU))
    raw = pod(requests={GPU: "2"})
    await bind(made, raw)
    made.profile.unreserve(made.view(raw), "n1", made.state)
    await asyncio.gather(*made.plugin._errands)
    assert made.handle.writer.lines[-2:] == ["update pod-extended-resources-1", "delete pod-extended-resources-1"]
    made.book.refresh()
    assert not made.book.exclusive


async def test_on_a_node_that_serves_the_resource_itself_no_claim_is_made():
    made = world(TWO, device_class("gpu", extendedResourceName=GPU), claim("a", request()), nodes=(node("n1", **{GPU: "4"}),))
    assert await bind(made, pod(claims=["a"], requests={GPU: "2"})) is None
    assert made.handle.writer.lines == ["update a", "update/status a"]


async def test_a_special_claim_that_cannot_be_created():
    made = world(TWO, device_class("gpu", extendedResourceName=GPU))
    made.handle.writer.failures = [Forbidden(403, "Forbidden", "no")]
    status = await bind(made, pod(requests={GPU: "2"}))
    assert status.message.startswith("create claim for extended resources ") and status.code is Code.ERROR
    made.profile.unreserve(made.view(pod(requests={GPU: "2"})), "n1", made.state)
    assert not made.book.exclusive
