"""Resource quotas: how much of each is used, and whether one more object fits.

In: every change to the objects that a quota counts. Out: the amounts in use, kept up to date by the difference that each
change makes; and the refusal of an object that would exceed a quota, in the words of the ResourceQuota plugin. A namespace
without quotas costs nothing: a table is followed from the first quota on that counts its objects.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.embedded.admission.amounts import (
    Amounts,
    affinity_terms,
    amount,
    amounts_of,
    containers_of,
    pod_amounts,
    qos_class,
)
from kubesched.embedded.api_errors import forbidden
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.storage.objects import Storage
from kubesched.embedded.storage.selectors import selects
from kubesched.embedded.storage.watch import Change, Entry
from kubesched.kube.values import quantity

TABLE = "resourcequotas"
_PLAIN_COUNTS = ("configmaps", "secrets", "replicationcontrollers", "resourcequotas", "services", "persistentvolumeclaims")
_MUST_BE_SAID = frozenset(
    ("cpu", "memory", *(f"{side}.{name}" for side in ("requests", "limits") for name in ("cpu", "memory")))
)
_STORAGE_CLASS = ".storageclass.storage.k8s.io/"


class Quotas:
    """The usage of every quota."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._used: dict[str, dict[str, int]] = {}  # quota to amounts in billionths, by name
        self._followed: set[str] = set()
        self._listeners: list[Callable[[str], None]] = []
        for entry in storage.table(TABLE).entries.values():
            self._count_anew(entry)
        storage.listen(TABLE, self._quota_changed)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the key of a quota whenever its usage may have changed."""
        self._listeners.append(listener)

    def used(self, key: str) -> Amounts:
        """Return the usage of a quota, for each amount it limits, in the style of the limit."""
        hard = _hard(self._storage.table(TABLE).entries[key].obj)
        used = self._used.get(key, {})
        return {name: quantity.format_quantity(used.get(name, 0), quantity.style_of(text)) for name, text in hard.items()}

    def check(self, resource: Resource, new: Object, old: Object | None = None) -> None:
        """Refuse an object that needs more than is left of a quota of its namespace.

        Only what grows can be refused: an object that already exceeds a quota may still shrink. A pod must state every cpu and
        memory amount that a quota limits, for otherwise nothing could be counted.
        """
        namespace = new["metadata"].get("namespace", "")
        for entry in self._storage.table(TABLE).in_namespace(namespace) if namespace else ():
            hard, name = _hard(entry.obj), new["metadata"]["name"]
            if not _is_scoped(entry.obj, resource.table, new):
                continue
            wanted = {key: text for key, text in usage_of(resource.table, new).items() if key in hard}
            if resource.table == "pods" and old is None:
                unsaid = _unsaid(new["spec"], hard)
                if unsaid:
                    why = f"failed quota: {entry.obj['metadata']['name']}: must specify {unsaid}"
                    raise forbidden(resource, name, why)
            before = usage_of(resource.table, old) if old is not None else {}
            used, over = self._used.get(entry.key, {}), []
            for key, text in sorted(wanted.items()):
                more = amount(text) - amount(before.get(key, "0"))
                if more > 0 and used.get(key, 0) + more > amount(hard[key]):
                    over.append(key)
            if over:
                held = self.used(entry.key)
                texts = [",".join(f"{key}={one[key]}" for key in over) for one in (wanted, held, hard)]
                why = f"exceeded quota: {entry.obj['metadata']['name']}, requested: {texts[0]}, "
                raise forbidden(resource, name, f"{why}used: {texts[1]}, limited: {texts[2]}")

    def _quota_changed(self, change: Change) -> None:
        """Count from the beginning for a quota that is new or has other limits."""
        if change.new is None:
            self._used.pop(change.key, None)
            return
        if change.old is None or change.old.obj.get("spec") != change.new.obj.get("spec"):
            self._count_anew(change.new)
            self._tell(change.key)

    def _count_anew(self, quota: Entry) -> None:
        """Count the objects of a namespace for one quota, and follow their tables from now on."""
        used = self._used[quota.key] = {}
        for table in _tables(_hard(quota.obj)):
            if table not in self._followed:
                self._followed.add(table)
                self._storage.listen(table, lambda change, table=table: self._changed(table, change))  # type: ignore[misc]
            for entry in self._storage.table(table).in_namespace(quota.namespace):
                self._add(used, quota, table, entry, 1)

    def _changed(self, table: str, change: Change) -> None:
        """Add the difference that a change makes to the quotas of its namespace."""
        for quota in self._storage.table(TABLE).in_namespace(change.namespace):
            used = self._used.setdefault(quota.key, {})
            before = dict(used)
            if change.old is not None:
                self._add(used, quota, table, change.old, -1)
            if change.new is not None:
                self._add(used, quota, table, change.new, 1)
            if used != before:
                self._tell(quota.key)

    def _add(self, used: dict[str, int], quota: Entry, table: str, entry: Entry, sign: int) -> None:
        """Add what one object uses to a quota, or subtract it."""
        if not _is_scoped(quota.obj, table, entry.obj):
            return
        hard = _hard(quota.obj)
        for name, text in usage_of(table, entry.obj).items():
            if name in hard:
                used[name] = used.get(name, 0) + sign * amount(text)

    def _tell(self, key: str) -> None:
        for listener in self._listeners:
            listener(key)


def _hard(quota: Object) -> Amounts:
    found: Amounts = (quota.get("spec") or {}).get("hard") or {}
    return found


def _tables(hard: Amounts) -> set[str]:
    """Return the tables whose objects count towards these amounts."""
    found = set()
    for name in hard:
        if name.startswith("count/"):
            found.add(name.removeprefix("count/"))
        elif name in _PLAIN_COUNTS:
            found.add(name)
        elif name.startswith("services."):
            found.add("services")
        elif name == "requests.storage" or _STORAGE_CLASS in name:
            found.add("persistentvolumeclaims")
        else:
            found.add("pods")
    return found


def usage_of(table: str, obj: Object) -> Amounts:
    """Return what one object uses, under every name by which a quota can limit it."""
    found = {f"count/{table}": "1"}
    if table == "pods":
        if (obj.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            found |= _pod_usage(pod_amounts(obj["spec"], "requests"), pod_amounts(obj["spec"], "limits"))
        return found
    if table in _PLAIN_COUNTS:
        found[table] = "1"
    spec = obj.get("spec") or {}
    if table == "services":
        is_balanced = spec.get("type") == "LoadBalancer"
        has_ports = spec.get("type") == "NodePort" or (is_balanced and spec.get("allocateLoadBalancerNodePorts", True))
        found["services.loadbalancers"] = str(int(is_balanced))
        found["services.nodeports"] = str(len(spec.get("ports") or ()) if has_ports else 0)
    elif table == "persistentvolumeclaims":
        size = amounts_of(spec, "requests").get("storage", "0")
        found["requests.storage"] = size
        if spec.get("storageClassName"):
            prefix = spec["storageClassName"] + _STORAGE_CLASS
            found |= {f"{prefix}requests.storage": size, f"{prefix}persistentvolumeclaims": "1"}
    return found


def _pod_usage(requests: Amounts, limits: Amounts) -> Amounts:
    """Return what a pod uses. `cpu` and `requests.cpu` are two names of the same amount."""
    found = {"pods": "1"}
    for name, text in requests.items():
        found[f"requests.{name}"] = text
        if name in ("cpu", "memory", "ephemeral-storage") or name.startswith("hugepages-"):
            found[name] = text
    for name in ("cpu", "memory", "ephemeral-storage"):
        if name in limits:
            found[f"limits.{name}"] = limits[name]
    return found


def _unsaid(spec: Object, hard: Amounts) -> str:
    """Return the amounts that a quota limits and containers do not state, with the names of the containers."""
    if (spec.get("resources") or {}).keys() & {"requests", "limits"}:
        return ""
    silent: dict[str, list[str]] = {}
    for container, _, _ in containers_of(spec):
        given = _pod_usage(amounts_of(container, "requests"), amounts_of(container, "limits"))
        for name in (hard.keys() & _MUST_BE_SAID) - given.keys():
            silent.setdefault(name, []).append(container["name"])
    return "; ".join(f"{name} for: {','.join(sorted(silent[name]))}" for name in sorted(silent))


def _is_scoped(quota: Object, table: str, obj: Object) -> bool:
    """Return whether an object is in the scopes of a quota. A quota with scopes counts pods only."""
    spec = quota.get("spec") or {}
    wanted: list[Object] = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    wanted += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return all(table == "pods" and _is_in_scope(obj, one) for one in wanted)


def _is_in_scope(pod: Object, wanted: Object) -> bool:
    """Return whether a pod is in one scope."""
    spec, scope = pod["spec"], wanted.get("scopeName")
    if scope in ("Terminating", "NotTerminating"):
        return bool((spec.get("activeDeadlineSeconds") is not None) == (scope == "Terminating"))
    if scope in ("BestEffort", "NotBestEffort"):
        return bool((qos_class(spec) == "BestEffort") == (scope == "BestEffort"))
    if scope == "PriorityClass":
        name = spec.get("priorityClassName")
        expression = {"key": "PriorityClass", "operator": wanted.get("operator"), "values": wanted.get("values") or []}
        return selects({"matchExpressions": [expression]}, {"PriorityClass": name} if name else {})
    if scope == "CrossNamespacePodAffinity":
        return any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in affinity_terms(spec))
    return False
