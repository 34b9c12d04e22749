"""The demo says which objects its scheduler does not look at, once for each reason."""

from __future__ import annotations

import pytest

from kubesched.embedded import ManualClock, ObjectStore
from kubesched.scheduler import config
from kubesched.scheduler.engine.assembly import default_configuration
from kubesched.tools.demo.ignored import IgnoredObjects

GROUP = {"spec": {"schedulingPolicy": {"basic": {}}}}
GANGS_ON = ("GenericWorkload=true,GangScheduling=true",)


def pod(name: str, scheduler: str) -> dict:
    return {"metadata": {"name": name}, "spec": {"schedulerName": scheduler, "containers": [{"name": "c", "image": "i"}]}}


@pytest.mark.parametrize(
    ("gates", "resource", "bodies", "told"),
    [
        pytest.param(
            (),
            "podgroups",
            [{"metadata": {"name": "a"}, **GROUP}, {"metadata": {"name": "b"}, **GROUP}],
            [
                "Ignored: PodGroup default/a: the gate GenericWorkload is off; "
                "--feature-gates GenericWorkload=true switches it on"
            ],
            id="a group without its gate, once",
        ),
        pytest.param(
            ("GangScheduling=false",),
            "podgroups",
            [{"metadata": {"name": "a"}, **GROUP}],
            [
                "Ignored: PodGroup default/a: the gate GangScheduling is off; "
                "--feature-gates GenericWorkload=true,GangScheduling=true switches it on"
            ],
            id="a group without the gates of 1.36",
        ),
        pytest.param(GANGS_ON, "podgroups", [{"metadata": {"name": "a"}, **GROUP}], [], id="a group with its gate"),
        pytest.param(
            (),
            "pods",
            [pod("p", "other"), pod("q", "other")],
            ["Ignored: Pod default/p: it asks for the scheduler other, and this one is default-scheduler"],
            id="a pod of another scheduler, once",
        ),
        pytest.param((), "pods", [pod("p", "default-scheduler")], [], id="a pod of ours"),
    ],
)
def test_what_is_ignored(gates: tuple[str, ...], resource: str, bodies: list[dict], told: list[str]) -> None:
    store, lines, given = ObjectStore(ManualClock(), seed=1), list[str](), config.Gates.fitting(gates)
    IgnoredObjects(store, default_configuration(given), given, lines.append)
    for body in bodies:
        store.create(resource, body)
    assert lines == told
