"""The same objects are decided the same in whatever formats they stand, and however they are split among documents."""

from __future__ import annotations

import gzip
import json
from random import Random
from typing import Any

import pytest
import yaml

from kubesched.kube.api import codec
from kubesched.kube.values.bounds import Content
from kubesched.tools.plan.cluster_files import cluster_in, read_cluster_file
from kubesched.tools.plan.manifests import manifests_in
from kubesched.tools.plan.planning import make_plan
from kubesched.tools.snapshots.captured import Captured
from kubesched.tools.snapshots.sources import Policy

BORN = "2026-01-01T00:00:00Z"
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: i, resources: {requests: {cpu: 500m}}}]
"""


def objects_of(chance: Random) -> list[dict[str, Any]]:
    """Return nodes and pods, some of which wait, as a server has them stored; their order is what ties go by."""
    found: list[dict[str, Any]] = []
    for i in range(chance.randint(1, 6)):
        offer = {"cpu": str(chance.randint(1, 4)), "memory": "8Gi", "pods": "10"}
        labels = {"kubernetes.io/hostname": f"n{i}", "topology.kubernetes.io/zone": f"z{i % 2}", "text": "yes"}
        found.append({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{i}", "labels": labels}})
        found[-1]["status"] = {"allocatable": offer, "capacity": offer}
    for i in range(chance.randint(1, 12)):
        asked = {"cpu": f"{chance.randint(1, 12)}00m"}
        spec: dict[str, Any] = {
            "containers": [
                {"name": "c", "image": "i", "resources": {"requests": asked}, "args": ["---", "a: 'b'\n---\n", "ö"]}
            ],
            "priority": chance.choice([0, 0, 1000]),
        }
        if chance.random() < 0.5:
            spec["nodeName"] = f"n{chance.randrange(6)}"
        meta = {"name": f"p{i}", "namespace": "shop", "labels": {"app": chance.choice("ab")}}
        found.append({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    for each in found:
        each["metadata"] |= {"uid": f"uid-{each['metadata']['name']}", "creationTimestamp": BORN}
    return found


def written(objects: list[dict[str, Any]], chance: Random) -> bytes:
    """Return the objects in documents of any kind that may stand one after another."""
    parts: list[str] = []
    rest = list(objects)
    while rest:
        n = chance.randint(1, len(rest))
        taken, rest = rest[:n], rest[n:]
        documents = taken
        if n > 1 or chance.random() < 0.3:
            documents = [{"apiVersion": "v1", "kind": "List", "items": taken}]
        if chance.random() < 0.5:
            parts += [yaml.safe_dump(each, default_flow_style=chance.choice([None, False])) for each in documents]
        else:
            gap = chance.choice(["", "\n", "\n\n "])
            parts.append(gap.join(json.dumps(each, indent=chance.choice([None, 2])) for each in documents))
    return f"\n---{chance.choice(['', ' # next'])}\n".join(parts).encode()


@pytest.mark.parametrize("seed", range(60))
def test_any_split_of_the_same_objects_gives_the_same_plan(seed: int, tmp_path: Any) -> None:
    chance = Random(seed)
    objects = objects_of(chance)
    whole = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=4).encode()
    first = cluster_in("f", Content(whole, True))
    log = b"".join(Captured(first.at, [codec.decode(each) for each in objects]).lines())
    ways = {
        "list": whole,
        "list in YAML": yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": objects}).encode(),
        "one line each": "\n".join(map(json.dumps, objects)).encode(),
        "documents": yaml.safe_dump_all(objects).encode(),
        "snapshot": log,
        **{f"mixed {n}": written(objects, chance) for n in range(3)},
    }
    policy = Policy.read(None, (), ())
    asked = manifests_in("the text", WEB)
    wanted = make_plan(first, asked, policy.engine).as_dict()
    n_waiting = sum(each["kind"] == "Pod" and "nodeName" not in each["spec"] for each in objects)
    assert (len(wanted["otherPods"]), wanted["summary"]["pods"]) == (n_waiting, 2)
    for way, data in ways.items():
        file = tmp_path / "file.txt"
        file.write_bytes(gzip.compress(data) if chance.random() < 0.5 else data)
        found = read_cluster_file(file)
        assert (found.at, found.objects) == (first.at, first.objects), way
        assert make_plan(found, asked, policy.engine).as_dict() == wanted, way
