"""Pods share their equal parts, and are otherwise just what was decoded."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubesched.kube.api import codec
from kubesched.kube.api.pod import Pod
from kubesched.kube.client.informers.deduplication import Deduplicator


def replica(number: int, **changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = {
        "metadata": {
            "name": f"web-{number}",
            "namespace": "a",
            "uid": f"u{number}",
            "labels": {"app": "web"},
            "ownerReferences": [{"uid": "rs", "controller": True}],
        },
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
            "tolerations": [{"key": "k"}],
            "volumes": [{"name": f"token-{number}", "projected": {"sources": [{"a": 1}]}}],
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [{"name": "c"}]},
    }
    for part, fields in changes.items():
        document[part] = {**document[part], **fields}
    return document


def decoded(document: dict[str, Any]) -> Pod:
    return codec.decode_as(Pod, codec.encode(document))


def test_replicas_share_what_their_template_says() -> None:
    deduplicator = Deduplicator()
    one, two = decoded(replica(1)), decoded(replica(2))
    deduplicator.settle(one, None)
    deduplicator.settle(two, None)
    assert two == decoded(replica(2))
    assert two.metadata.labels is one.metadata.labels
    assert two.metadata.owner_references is one.metadata.owner_references
    assert two.spec.containers is one.spec.containers
    assert two.spec.tolerations is one.spec.tolerations
    assert two.status.conditions[0] is one.status.conditions[0]
    assert two.status.container_statuses is one.status.container_statuses


def test_a_pod_shares_with_its_own_past() -> None:
    deduplicator = Deduplicator()
    old, new = decoded(replica(1)), decoded(replica(1, status={"phase": "Running"}))
    deduplicator.settle(old, None)
    deduplicator.settle(new, old)
    assert new.spec.volumes is old.spec.volumes
    assert (old.status.phase, new.status.phase) == ("", "Running")


PARTS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries({"labels": st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"))}),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "containers": st.sampled_from([[], [{"name": "c"}], [{"name": "d"}]]),
                "initContainers": st.sampled_from([[], [{"name": "i"}]]),
                "tolerations": st.sampled_from([[], [{"key": "z"}]]),
                "affinity": st.sampled_from([{}, {"podAffinity": {}}]),
                "volumes": st.sampled_from([[], [{"name": "v", "projected": {}}], [{"name": "v", "emptyDir": {}}]]),
                "topologySpreadConstraints": st.sampled_from([[], [{"maxSkew": 1}]]),
            },
        ),
        "status": st.fixed_dictionaries({"conditions": st.sampled_from([[], [{"type": "Ready", "status": "False"}]])}),
    },
)


@given(st.lists(PARTS, max_size=8))
def test_sharing_changes_no_pod_and_none_that_came_before(history: list[dict[str, Any]]) -> None:
    deduplicator = Deduplicator()
    documents = [replica(number, **changes) for number, changes in enumerate(history)]
    pods = [decoded(document) for document in documents]
    for number, pod in enumerate(pods):
        deduplicator.settle(pod, pods[number - 1] if number % 3 == 2 else None)
    assert pods == [decoded(document) for document in copy.deepcopy(documents)]
