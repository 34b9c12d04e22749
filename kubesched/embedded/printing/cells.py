"""The cells of `kubectl get` that need more than a field: how one object reads in a table.

In: an object, or a field of one. Out: the text of a cell, as kube-apiserver prints it. columns.py says which function is in
which column.
"""

from __future__ import annotations

from typing import Any

from kubesched.embedded.admission.amounts import amount
from kubesched.embedded.clock import seconds_of
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.storage.selectors import written_selector
from kubesched.kube.values import quantity

NONE = "<none>"
UNKNOWN = "<unknown>"
_SHOWN = 3  # of a list; then how many more there are
_ROLE_PREFIX = "node-role.kubernetes.io/"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _spec(obj: Object) -> Object:
    found: Object = obj.get("spec") or {}
    return found


def _status(obj: Object) -> Object:
    found: Object = obj.get("status") or {}
    return found


def human_duration(seconds: float) -> str:
    """Return a duration as kubectl writes it: two units while the second one matters, then one."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    total = max(total, 0)
    minutes, hours, days = total // 60, total // 3600, total // 86_400
    if total < 120:
        return f"{total}s"
    if minutes < 10:
        return f"{minutes}m{total % 60}s" if total % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    years = days // 365
    return f"{years}y{days % 365}d" if years < 8 and days % 365 else f"{years}y"


def since(text: Any, now: float) -> str:
    """Return how long ago a timestamp is."""
    if not text:
        return UNKNOWN
    try:
        return human_duration(now - seconds_of(text))
    except ValueError:
        return "<invalid>"


def age(obj: Object, now: float) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def pod_status(pod: Object) -> str:
    """Return the word under STATUS: the phase, unless a container, a gate or a deletion says more."""
    status = _status(pod)
    reason = status.get("reason") or status.get("phase") or ""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    initializing = False
    n_init = len(pod["spec"].get("initContainers") or ())
    for at, container in enumerate(status.get("initContainerStatuses") or ()):
        state = container.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting")
        if ended and ended.get("exitCode", 0) == 0:
            continue
        if container.get("started") and container.get("restartPolicy") == "Always":
            continue
        initializing = True
        if ended:
            reason = f"Init:{ended.get('reason') or 'ExitCode:' + str(ended.get('exitCode', 0))}"
        elif waiting and waiting.get("reason") not in (None, "", "PodInitializing"):
            reason = f"Init:{waiting['reason']}"
        else:
            reason = f"Init:{at}/{n_init}"
        break
    if not initializing:
        reason = _containers_reason(status, reason)
    if "deletionTimestamp" in pod["metadata"]:
        reason = "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return reason


def _containers_reason(status: Object, reason: str) -> str:
    """Return the reason of the first container that has one; Completed only if no container runs."""
    has_running = False
    for container in reversed(status.get("containerStatuses") or ()):
        state = container.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif ended.get("reason"):
            reason = ended["reason"]
        elif ended:
            reason = f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"
        elif container.get("ready") and state.get("running") is not None:
            has_running = True
    if reason == "Completed" and has_running:
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ())
        return "Running" if ready else "NotReady"
    return reason


def pod_ready(pod: Object) -> str:
    statuses = _status(pod).get("containerStatuses") or ()
    n_ready = sum(bool(one.get("ready")) for one in statuses)
    return f"{n_ready}/{len(pod['spec'].get('containers') or ())}"


def pod_restarts(pod: Object, now: float) -> str:
    """Return the number of restarts, and when the last one was."""
    statuses = _status(pod).get("containerStatuses") or ()
    n_restarts = sum(one.get("restartCount", 0) for one in statuses)
    ended = [((one.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for one in statuses]
    last = max((moment for moment in ended if moment), default=None)
    return f"{n_restarts} ({since(last, now)} ago)" if n_restarts and last else str(n_restarts)


def readiness_gates(pod: Object) -> str:
    """Return how many readiness gates are open, of how many."""
    gates = pod["spec"].get("readinessGates") or ()
    if not gates:
        return NONE
    conditions = _status(pod).get("conditions") or ()
    true = {one.get("type") for one in conditions if one.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in true for gate in gates)}/{len(gates)}"


def node_status(node: Object) -> str:
    """Return Ready, NotReady or Unknown, and whether the node is cordoned."""
    conditions = _status(node).get("conditions") or ()
    ready = next((one.get("status") for one in conditions if one.get("type") == "Ready"), None)
    words = ["Ready" if ready == "True" else "NotReady" if ready is not None else "Unknown"]
    if _spec(node).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def node_roles(node: Object) -> str:
    """Return the roles, which are labels: node-role.kubernetes.io/ROLE, and kubernetes.io/role for a single one."""
    labels = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return ",".join(sorted(role for role in roles if role)) or NONE


def node_address(node: Object, kind: str) -> str:
    return next((one["address"] for one in _status(node).get("addresses") or () if one.get("type") == kind), NONE)


def selector_text(selector: Any) -> str:
    return written_selector(selector or {}) or NONE


def labels_text(labels: Any) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def access_modes(modes: Any) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in modes or ())


def service_external_ip(service: Object) -> str:
    """Return the addresses for clients outside: given ones, the load balancer's, or <pending>."""
    spec = _spec(service)
    given = list(spec.get("externalIPs") or ())
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec.get("type") == "LoadBalancer":
        held = load_balancer_text(_status(service).get("loadBalancer"))
        return ",".join([*([held] if held else []), *given]) or "<pending>"
    return ",".join(given) or NONE


def load_balancer_text(status: Object | None) -> str:
    """Return the addresses of a load balancer."""
    found = (one.get("ip") or one.get("hostname") or "" for one in (status or {}).get("ingress") or ())
    return ",".join(sorted({one for one in found if one}))


def service_ports(service: Object) -> str:
    texts = []
    for port in _spec(service).get("ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        texts.append(f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}")
    return ",".join(texts) or NONE


def job_status(job: Object) -> str:
    status = _status(job)
    true = {one.get("type") for one in status.get("conditions") or () if one.get("status") == "True"}
    for kind in ("Complete", "Failed"):
        if kind in true:
            return kind
    if "deletionTimestamp" in job["metadata"]:
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if kind in true:
            return kind
    return "Running"


def job_completions(job: Object) -> str:
    """Return how many pods have succeeded, of how many. Without a number of completions one is enough."""
    spec, status = _spec(job), _status(job)
    done = status.get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    parallel = spec.get("parallelism", 1)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def job_duration(job: Object, now: float) -> str:
    status = _status(job)
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    return human_duration((seconds_of(end) if end else now) - seconds_of(start))


def endpoints_text(obj: Object) -> str:
    """Return the first three addresses with their ports, and how many more there are."""
    found = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in obj.get("subsets") or ()
        for address in subset.get("addresses") or ()
        for port in subset.get("ports") or ()
    ]
    shown = ",".join(found[:3])
    return (f"{shown} + {len(found) - 3} more..." if len(found) > 3 else shown) or NONE


def event_object(event: Object) -> str:
    involved = event.get("involvedObject") or {}
    return f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"


def event_source(event: Object) -> str:
    source = event.get("source") or {}
    parts = [source.get("component") or event.get("reportingComponent") or "", source.get("host") or ""]
    return ", ".join(part for part in parts if part)


def event_last_seen(event: Object, now: float) -> str:
    """Return when an event was last seen, and how often since when."""
    series = event.get("series") or {}
    last = event.get("lastTimestamp") or series.get("lastObservedTime") or event.get("eventTime")
    first = event.get("firstTimestamp") or event.get("eventTime")
    count = series.get("count") or event.get("count") or 1
    if count > 1:
        return f"{since(last, now)} (x{count} over {since(first, now)})"
    return since(last or event["metadata"].get("creationTimestamp"), now)


def claim_state(claim: Object) -> str:
    """Return the state of a resource claim."""
    status = _status(claim)
    if "deletionTimestamp" in claim["metadata"]:
        return "deleted" + (",allocated" if status.get("allocation") else "")
    if not status.get("allocation"):
        return "pending"
    return "allocated,reserved" if status.get("reservedFor") else "allocated"


def count(items: Any) -> int:
    return len(items or ())


def text(value: Any) -> str:
    return str(value)


def truth(value: Any) -> str:
    return "True" if value else "False"


def pair(held: Any, *names: str) -> str:
    """Return some fields of an object with slashes between them; a text, which stands for no object, as it is."""
    return held if isinstance(held, str) else "/".join(str(held.get(name, "")) for name in names)


def phase(obj: Object) -> str:
    """Return the phase, unless the object is being deleted."""
    return "Terminating" if "deletionTimestamp" in obj["metadata"] else _status(obj).get("phase", "")


def n_data(obj: Object) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


def ready_ratio(obj: Object) -> str:
    return f"{_status(obj).get('readyReplicas', 0)}/{_spec(obj).get('replicas', 0)}"


def bound_capacity(claim: Object) -> str:
    """Return the size of a claim once it has a volume."""
    return str((_status(claim).get("capacity") or {}).get("storage", "")) if _spec(claim).get("volumeName") else ""


def bound_modes(claim: Object) -> str:
    return access_modes(_status(claim).get("accessModes")) if _spec(claim).get("volumeName") else ""


def class_name(obj: Object, kind: str) -> str:
    """Return the name of a storage or ingress class, and whether it is the default one."""
    is_default = (obj["metadata"].get("annotations") or {}).get(f"{kind}.kubernetes.io/is-default-class") == "true"
    return str(obj["metadata"]["name"]) + (" (default)" if is_default else "")


def event_message(event: Object) -> str:
    return str(event.get("message", "")).strip()


def event_first_seen(event: Object, now: float) -> str:
    return since(event.get("firstTimestamp") or event.get("eventTime"), now)


def last_schedule(cron_job: Object, now: float) -> str:
    last = _status(cron_job).get("lastScheduleTime")
    return since(last, now) if last else NONE


def autoscaler_targets(obj: Object) -> str:
    """Return current and wanted value of the first two metrics, and how many more there are."""
    wanted = _spec(obj).get("metrics") or []
    current = _status(obj).get("currentMetrics") or []
    texts = []
    for at_, one in enumerate(wanted):
        field = one.get("type", "")[:1].lower() + one.get("type", "")[1:]
        source = one.get(field) or {}
        held = ((current[at_].get(field) or {}).get("current") or {}) if at_ < len(current) else {}
        target = source.get("target") or {}
        name = f"{source['name']}: " if "name" in source else ""
        if "averageUtilization" in target:
            current = f"{held['averageUtilization']}%" if "averageUtilization" in held else UNKNOWN
            texts.append(f"{name}{current}/{target['averageUtilization']}%")
        elif "averageValue" in target:
            mark = " (avg)" if field in ("external", "object") else ""
            texts.append(f"{name}{held.get('averageValue', UNKNOWN)}/{target['averageValue']}{mark}")
        else:
            texts.append(f"{name}{held.get('value', UNKNOWN)}/{target.get('value', '<auto>')}")
    if not texts:
        return NONE
    rest = len(texts) - 2
    return ", ".join(texts[:2]) + (f" + {rest} more..." if rest > 0 else "")


def quota(obj: Object, side: str) -> str:
    """Return what a quota limits of one side, with what is used of it. All that is not a limit counts as a request."""
    hard, used = _status(obj).get("hard") or {}, _status(obj).get("used") or {}
    names = [name for name in sorted(hard) if name.startswith("limits.") == (side == "limits")]
    return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)


def ingress_hosts(obj: Object) -> str:
    """Return the first three hosts; * if the rules name none."""
    rules = _spec(obj).get("rules") or []
    hosts = [one["host"] for one in rules if one.get("host")]
    text = ",".join(hosts[:_SHOWN]) or "*"
    return f"{text} + {len(rules) - _SHOWN} more..." if len(hosts) > _SHOWN else text


def ingress_ports(obj: Object) -> str:
    return "80, 443" if _spec(obj).get("tls") else "80"


def class_parameters(obj: Object) -> str:
    held = _spec(obj).get("parameters")
    if not held:
        return NONE
    group = f".{held['apiGroup']}" if held.get("apiGroup") else ""
    return f"{held.get('kind', '')}{group}/{held.get('name', '')}"


def slice_ports(obj: Object) -> str:
    return _limited([str(one.get("port", "*")) for one in obj.get("ports") or ()])


def slice_endpoints(obj: Object) -> str:
    return _limited([ip for one in obj.get("endpoints") or () for ip in one.get("addresses") or ()])


def _limited(values: list[str]) -> str:
    """Return the first three values, and how many more there are."""
    if not values:
        return "<unset>"
    rest = len(values) - _SHOWN
    return ",".join(values[:_SHOWN]) + (f" + {rest} more..." if rest > 0 else "")


def subjects(binding: Object, kind: str) -> str:
    """Return the subjects of a role binding that are of one kind; accounts with their namespace."""
    found = [one for one in binding.get("subjects") or () if one.get("kind") == kind]
    return ", ".join(pair(one, "namespace", "name") if kind == "ServiceAccount" else one["name"] for one in found)


def param_ref(held: Any) -> str:
    return f"{held.get('namespace') or '*'}/{held.get('name') or '*'}" if held else "<unset>"


def api_available(obj: Object) -> str:
    for one in _status(obj).get("conditions") or ():
        if one.get("type") == "Available":
            return "True" if one.get("status") == "True" else f"False ({one.get('reason', '')})"
    return "Unknown"


def usage(metrics: Object, name: str) -> str:
    """Return how much of a resource a node uses, or all containers of a pod together."""
    held = [one.get("usage") or {} for one in metrics.get("containers") or [metrics]]
    texts = [one[name] for one in held if name in one]
    return quantity.format_quantity(sum(map(amount, texts)), quantity.style_of(texts[0] if texts else "0"))
