"""The service controller of a cloud: a Service of type LoadBalancer gets an address from outside.

In: Services. Out: `status.loadBalancer`, with an address of 172.18.0.0/16 that no other Service has, taken back when the
type changes. A Service that names a `loadBalancerClass` has another controller, and is left to it.
"""

from __future__ import annotations

from kubesched.embedded.controllers.shared.controller import Controller
from kubesched.embedded.controllers.shared.event_recorder import EventRecorder
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.store import ObjectStore


class LoadBalancers(Controller):
    """Gives Services their outer address."""

    def __init__(self, store: ObjectStore, recorder: EventRecorder) -> None:
        super().__init__(store, recorder, "services", "service-controller")

    def sync(self, obj: Object) -> float | None:
        spec, status = obj["spec"], obj.get("status") or {}
        given = (status.get("loadBalancer") or {}).get("ingress")
        wanted = spec["type"] == "LoadBalancer" and "deletionTimestamp" not in obj["metadata"]
        if bool(given) == wanted or spec.get("loadBalancerClass"):
            return None
        if wanted:
            self.tell(obj, "EnsuringLoadBalancer", "Ensuring load balancer")
            address = {"ip": self._free_address(spec.get("loadBalancerIP", "")), "ipMode": "VIP"}
            self.report(obj, {**status, "loadBalancer": {"ingress": [address]}})
            self.tell(obj, "EnsuredLoadBalancer", "Ensured load balancer")
        else:
            self.report(obj, {**status, "loadBalancer": {}})
        return None

    def _free_address(self, asked: str) -> str:
        if asked:
            return asked
        taken = {
            one.get("ip")
            for entry in self._store.context.table(self._resource).entries.values()
            for one in ((entry.obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        }
        return next(ip for ip in (f"172.18.{n >> 8}.{n & 255}" for n in range(1, 65_535)) if ip not in taken)
