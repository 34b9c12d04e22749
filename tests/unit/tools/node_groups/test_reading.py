"""Files of node groups: ours, and NodePools with instance types."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.errors import ConfigError
from kubesched.solver.node_groups.sizes import GroupSizes
from kubesched.testing import node
from kubesched.tools.node_groups.reading import read_node_groups

POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  weight: 10
  limits: {cpu: 32}
  template:
    metadata: {labels: {team: shop}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      taints: [{key: shop, effect: NoSchedule}]
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
      - {key: topology.kubernetes.io/zone, operator: In, values: [a, b]}
      - {key: kubernetes.io/arch, operator: NotIn, values: [arm64]}
      - {key: cores, operator: Gt, values: ["4"]}
"""
TYPES = """
---
instanceTypes:
- {name: s, capacity: {cpu: 4, memory: 16Gi}, labels: {cores: "4"}, zones: [a, b, c], price: 0.2, spotPrice: 0.06}
- {name: m, capacity: {cpu: 8, memory: 32Gi}, labels: {cores: "8"}, zones: [a, b, c], price: 0.4, spotPrice: 0.12}
- {name: arm, capacity: {cpu: 8}, labels: {cores: "8", kubernetes.io/arch: arm64}, zones: [a], price: 0.3, spotPrice: 0.1}
- {name: no-spot, capacity: {cpu: 8, memory: 32Gi}, labels: {cores: "8"}, zones: [a], price: 0.3}
"""


def write(folder: Path, text: str) -> Path:
    (folder / "groups.yaml").write_text(text)
    return folder / "groups.yaml"


def test_a_node_pool_is_a_group_for_each_type_and_zone_that_it_allows(tmp_path: Path) -> None:
    groups = read_node_groups(write(tmp_path, POOL + TYPES))
    assert [group.name for group in groups] == ["general-m-a-spot", "general-m-b-spot"]
    assert {(group.price, group.weight, group.pool, group.taints[0].key) for group in groups} == {(0.12, 10, "general", "shop")}
    assert groups[0].labels["team"] == "shop" and groups[0].labels["node.kubernetes.io/instance-type"] == "m"
    sizes = GroupSizes(groups, [node("x", labels=dict(groups[0].labels))])
    assert sizes.of("x") is groups[0] and sizes.room(groups[1]) == 3  # eight of 32 cores are there


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (POOL, "NodePool general needs instanceTypes"),
        (POOL.replace("[spot]", "[reserved]") + TYPES, "none of the instanceTypes meets the requirements of NodePool general"),
        (POOL.replace("Gt", "Greater") + TYPES, "spec.template.spec.requirements"),
        (POOL.replace("NodePool", "NodeClaim"), "only NodePool is read, found NodeClaim"),
        ("nodeGroups: []", "no node groups in it"),
        ("nodeGroups: [{name: a, capacity: {cpu: 1}, max: 1, min: 2}]", "nodeGroups[0].max: must not be less than min"),
        ("nodeGroups: [{name: a, capacity: {cpu: 1}, prize: 1}]", "unknown field `prize`"),
        ("nodeGroups: [{name: a, capacity: {cpu: 1}, price: -1}]", "nodeGroups[0].price: must not be negative"),
        ("nodeGroups: [{name: a, capacity: {}}, {name: a, capacity: {}}]", "another node group named a"),
        ("nodeGroups: [{name: a, capacity: {}, limits: {cpu: 1}}]", "limits: are those of a pool"),
        ("{", "not YAML"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        read_node_groups(write(tmp_path, text))
    assert said in str(refused.value) and "groups.yaml" in str(refused.value) and "\n" not in str(refused.value)
