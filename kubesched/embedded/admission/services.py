"""Addresses of Services: one inside the cluster, and ports on the nodes for clients outside.

In: a Service that is created or changed. Out: the same Service, in place, with the addresses it did not ask for by name. A
refusal if it asks for one that is taken, or if all are taken.
"""

from __future__ import annotations

from kubesched.embedded.api_errors import internal, invalid
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.validation import field
from kubesched.embedded.validation.field import Cause
from kubesched.embedded.verbs.context import Context

_ADDRESSES = tuple(f"10.96.{n >> 8}.{n & 255}" for n in range(1, 65_535))  # the service network 10.96.0.0/16
_NODE_PORTS = range(30_000, 32_768)  # kube-apiserver's default range


def give_addresses(context: Context, resource: Resource, service: Object, old: Object | None = None) -> None:
    """Give a service its addresses; a changed one keeps what it has."""
    spec = service["spec"]
    if old is not None:
        _keep(spec, old["spec"])
    others = [
        entry.obj.get("spec") or {}
        for entry in context.table(resource).entries.values()
        if entry.obj["metadata"].get("uid") != service["metadata"].get("uid")
    ]
    causes: list[Cause] = []
    if spec["type"] != "ExternalName":
        taken = {one.get("clusterIP") for one in others}
        address = spec.setdefault("clusterIP", "") or next((ip for ip in _ADDRESSES if ip not in taken), "")
        if not address:
            raise internal("failed to allocate a serviceIP: range is full")
        if address != "None" and address in taken:
            why = f"failed to allocate IP {address}: provided IP is already allocated"
            causes.append(field.invalid("spec.clusterIPs", [address], why))
        spec["clusterIP"] = address
        spec.setdefault("clusterIPs", [address])
    if spec["type"] == "NodePort" or (spec["type"] == "LoadBalancer" and spec["allocateLoadBalancerNodePorts"]):
        causes += _node_ports(spec, others)
    if causes:
        raise invalid(resource, service["metadata"]["name"], causes)


def _keep(spec: Object, old: Object) -> None:
    """Take over the addresses that the service had, as far as its type still has a use for them."""
    for name in ("clusterIP", "clusterIPs"):
        if name in old and spec["type"] != "ExternalName":
            spec.setdefault(name, old[name])
    if spec["type"] in ("NodePort", "LoadBalancer"):
        held = {port.get("name", ""): port["nodePort"] for port in old.get("ports") or () if port.get("nodePort")}
        for port in spec.get("ports") or ():
            if not port.get("nodePort") and port.get("name", "") in held:
                port["nodePort"] = held[port.get("name", "")]


def _node_ports(spec: Object, others: list[Object]) -> list[Cause]:
    """Give each port a port on the nodes. The same number may serve TCP and UDP if both ask for it."""
    taken = {
        (port.get("nodePort"), port.get("protocol", "TCP"))
        for one in others
        for port in one.get("ports") or ()
        if port.get("nodePort")
    }
    causes = []
    for at, port in enumerate(spec.get("ports") or ()):
        protocol, number = port.get("protocol", "TCP"), port.get("nodePort")
        if not number:
            numbers = {one for one, _ in taken}
            number = next((free for free in _NODE_PORTS if free not in numbers), None)
            if number is None:
                raise internal("failed to allocate a nodePort: range is full")
            port["nodePort"] = number
        elif (number, protocol) in taken:
            causes.append(field.invalid(f"spec.ports[{at}].nodePort", number, "provided port is already allocated"))
        elif number not in _NODE_PORTS:
            why = f"provided port is not in the valid range. The range of valid ports is {_NODE_PORTS[0]}-{_NODE_PORTS[-1]}"
            causes.append(field.invalid(f"spec.ports[{at}].nodePort", number, why))
        taken.add((number, protocol))
    return causes
