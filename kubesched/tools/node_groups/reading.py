"""Files of node groups: ours, and Karpenter's NodePools.

In: YAML or JSON with `nodeGroups`; or NodePools as they are on a cluster, beside `instanceTypes`, because a NodePool says
which types it takes and only the cloud knows what a type offers. Out: `NodeGroup` values, checked: of a NodePool one for
each instance type, zone and capacity type that its requirements allow. What cannot be read is refused in one line that names
the file and the field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from kubesched.errors import ConfigError
from kubesched.kube.api import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    Quantity,
    Taint,
    compile_node_selector,
)
from kubesched.kube.values import ZONE, yaml_documents
from kubesched.solver.node_groups import NodeGroup, Seconds, Spot
from kubesched.tools.simulation.scenario import Strict, check_group, naming, refused

ARCH, OS = "kubernetes.io/arch", "kubernetes.io/os"
INSTANCE_TYPE, CAPACITY_TYPE, NODE_POOL = (
    "node.kubernetes.io/instance-type",
    "karpenter.sh/capacity-type",
    "karpenter.sh/nodepool",
)
MOST_NODES = 1000
"""How far a group grows for which nobody says it."""


class InstanceType(Strict, kw_only=True):
    """What a cloud offers under a name, where, and for how much an hour."""

    name: str
    capacity: dict[str, Quantity]
    allocatable: dict[str, Quantity] | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    zones: tuple[str, ...] = ("",)
    price: float = 0.0
    spot_price: float | None = None
    """Without it there is no spot capacity of this type."""
    spot: Spot | None = None
    startup: Seconds = 60


class NodeGroupFile(Strict, kw_only=True):
    """Groups of nodes that may grow, and instance types for the NodePools beside them."""

    node_groups: tuple[NodeGroup, ...] = ()
    instance_types: tuple[InstanceType, ...] = ()


class NodePool(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What matters here of a Karpenter NodePool."""

    class Spec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
        """Its template, limits and weight."""

        class Template(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
            """What its nodes are like."""

            class NodeClaimSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
                """Which types, and what keeps pods off."""

                requirements: tuple[NodeSelectorRequirement, ...] = ()
                taints: tuple[Taint, ...] = ()

            metadata: ObjectMeta = ObjectMeta()
            spec: NodeClaimSpec

        template: Template
        limits: dict[str, Quantity] = {}
        weight: int = 0

    metadata: ObjectMeta
    spec: Spec


def read_node_groups(file: Path) -> list[NodeGroup]:
    """Read a file of node groups and NodePools; raise ConfigError if it cannot be used."""
    pools: list[tuple[NodePool, str]] = []
    groups: list[NodeGroup] = []
    types: list[InstanceType] = []
    with naming(file):
        documents = [document for document in yaml_documents(file.read_bytes()) if document is not None]
    for number, document in enumerate(documents, 1):
        where = f"{file}, document {number}"
        try:
            if isinstance(document, dict) and str(document.get("apiVersion", "")).startswith("karpenter.sh/"):
                if document.get("kind") != "NodePool":
                    raise ConfigError(where, f"of Karpenter's kinds only NodePool is read, found {document.get('kind')}")
                pools.append((msgspec.convert(document, NodePool), where))
                continue
            found = msgspec.convert(document, NodeGroupFile)
        except msgspec.ValidationError as error:
            raise refused(where, str(error)) from error
        groups += found.node_groups
        types += found.instance_types
    for i, group in enumerate(groups):
        check_group(group, f"{file}: nodeGroups[{i}]")
    for pool, where in pools:
        if not types:
            raise ConfigError(
                where, f"NodePool {pool.metadata.name} needs instanceTypes in the same file: name, capacity, price"
            )
        groups += _of_pool(pool, types, where)
    if not groups:
        raise ConfigError(str(file), "no node groups in it")
    for i, group in enumerate(groups):
        if any(other.name == group.name for other in groups[:i]):
            raise ConfigError(str(file), f"there is another node group named {group.name}")
    return [group if group.max is not None else msgspec.structs.replace(group, max=MOST_NODES) for group in groups]


def _of_pool(pool: NodePool, types: list[InstanceType], where: str) -> list[NodeGroup]:
    """Return a group for each type, zone and capacity type that a NodePool allows."""
    name, template = pool.metadata.name, pool.spec.template
    requirements = template.spec.requirements
    listed = {each.key: each.values or () for each in requirements if each.operator == "In"}
    wanted = {key: values[0] for key, values in listed.items() if len(values) == 1}
    allows = compile_node_selector(NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=requirements),)))
    if allows.error:
        raise ConfigError(f"{where}: spec.template.spec.requirements", allows.error)
    found = []
    for kind in types:
        for labels, price, is_spot in _offers(kind):
            labels = {**wanted, **(template.metadata.labels or {}), **labels, NODE_POOL: name}
            if requirements and not allows.matches("", labels):
                continue
            parts = (name, kind.name, labels.get(ZONE, ""), "spot" if is_spot else "")
            group = NodeGroup(
                name="-".join(part for part in parts if part),
                count=0,
                capacity=kind.capacity,
                allocatable=kind.allocatable,
                labels=labels,
                taints=template.spec.taints,
                startup=kind.startup,
                max=MOST_NODES,
                price=price,
                weight=pool.spec.weight,
                spot=kind.spot if is_spot else None,
                selector={key: labels[key] for key in (NODE_POOL, INSTANCE_TYPE, ZONE, CAPACITY_TYPE) if key in labels},
                pool=name,
                limits=pool.spec.limits,
            )
            check_group(group, where)
            found.append(group)
    if not found:
        raise ConfigError(where, f"none of the instanceTypes meets the requirements of NodePool {name}")
    return found


def _offers(kind: InstanceType) -> Iterator[tuple[Mapping[str, str], float, bool]]:
    """Yield what can be had of a type: the labels that its nodes would have, the price, and whether it is spot capacity."""
    plain = {ARCH: "amd64", OS: "linux", INSTANCE_TYPE: kind.name, **kind.labels}
    for zone in kind.zones:
        labels = {**plain, **({ZONE: zone} if zone else {})}
        yield {**labels, CAPACITY_TYPE: "on-demand"}, kind.price, False
        if kind.spot_price is not None:
            yield {**labels, CAPACITY_TYPE: "spot"}, kind.spot_price, True
