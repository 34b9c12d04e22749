"""Names hidden, decisions the same: whatever the cluster, and however ties fall."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.fuzzer import THEMES, Fuzzer

from kubesched.kube.api import codec
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.testing import clusters
from kubesched.tools.simulation.replay import replay
from kubesched.tools.snapshots.anonymizing import hide_names
from kubesched.tools.snapshots.captured import Captured, read_captured
from kubesched.tools.snapshots.pseudonyms import KEPT_WORDS


def random_cluster(seed: int) -> Captured:
    random = Random(seed)
    nodes = [clusters.random_node(random, f"acme-host-{random.randrange(10**6)}") for _ in range(random.randrange(1, 12))]
    placed = [clusters.random_pod(random, f"acme-run-{i}", on=random.choice(nodes).metadata.name) for i in range(12)]
    kinds = [clusters.random_pod(random, f"acme-new-{i}") for i in range(4)]
    kinds += [clusters.disguised(random, random.choice(kinds)) for _ in range(2)]
    pending = []
    for i in range(12):
        kind = random.choice(kinds)
        uid = f"{random.getrandbits(128):032x}" if random.random() < 0.5 else f"uid-of-acme-{i}"
        meta = msgspec.structs.replace(kind.metadata, name=f"acme-new-{i}", uid=uid)
        pending.append(msgspec.structs.replace(kind, metadata=meta))
    objects = [*clusters.namespaces(), *nodes, *placed, *pending]
    random.shuffle(objects)
    return Captured(1_000.0, objects, seed=random.randrange(1000))


def renamed(line: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Return a decision as it would read under the pseudonyms."""

    def name(word: str) -> str:
        return names.get(word, word)

    namespace, _, pod = line["pod"].partition("/")
    note = line["note"]
    if line["event"] in ("Scheduled", "Preempted"):  # ... on node n1; by whom is a uid
        note = name(note.rpartition(" ")[2])
    elif "Invalid value" in note:
        note = "some text with a name in it"
    elif "placement for pod on node " in note:  # which 1.37 says of a preemption
        before, on_node, after = note.partition("placement for pod on node ")
        node, comma, rest = after.partition(",")
        note = before + on_node + name(node) + comma + rest
    return {**line, "pod": f"{name(namespace)}/{name(pod)}", "note": note}


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for each in value.items() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from texts(each)


def originals(cluster: Captured) -> set[str]:
    """Return what is a name in a random cluster."""
    found: set[str] = {"app", "disk", "rank", "team", "gpu", "soft", "down", "main"}
    for obj in cluster.objects:
        found |= {obj.metadata.name, obj.metadata.namespace, *obj.metadata.labels.values()}
        if isinstance(obj, Pod):
            found |= {container.image for container in obj.spec.containers}
        elif isinstance(obj, Node):
            found |= {name for image in obj.status.images for name in image.names}
    return {name for name in found - KEPT_WORDS if not name.isdigit()}


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_hidden_clusters_are_decided_alike_and_show_no_name(seed: int) -> None:
    cluster = random_cluster(seed)
    hidden, names = hide_names(cluster)
    data = b"".join(hidden.lines())
    assert b"acme" not in data
    shown = {text for line in data.splitlines() for text in texts(msgspec.json.decode(line))}
    assert not shown & originals(cluster)
    assert read_captured(data.splitlines()).objects == hidden.objects
    wanted = [renamed(line, names) for line in replay(cluster.lines())]
    assert [renamed(line, {}) for line in replay(hidden.lines())] == wanted, f"seed {seed}"


@pytest.mark.parametrize("theme", THEMES)
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_odd_clusters_are_decided_alike_too(theme: str, seed: int) -> None:
    wild = Fuzzer(Random(seed), theme)
    raws = [*wild.objects(8, 20), *(wild.pod(f"new-{i}") for i in range(15))]
    cluster = Captured(1_000.0, [codec.decode(dict(raw)) for raw in raws], seed)
    hidden, names = hide_names(cluster)
    wanted = [renamed(line, names) for line in replay(cluster.lines())]
    assert [renamed(line, {}) for line in replay(hidden.lines())] == wanted, f"seed {seed}"
