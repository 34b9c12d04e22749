"""Cells: how one object reads in the tables of `kubectl get`.

In: objects of the kinds with a story of their own. Out: the texts of their cells, as the reference prints them.
"""

from __future__ import annotations

from typing import Any

from kubesched.embedded.clock import seconds_of
from kubesched.embedded.resources import Object
from kubesched.embedded.storage.selectors import requirements_of

NONE = "<none>"
UNKNOWN = "<unknown>"
_ROLE_PREFIX = "node-role.kubernetes.io/"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def human_duration(seconds: float) -> str:
    """Return a span as kubectl writes it: two units while they matter, then one."""
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
    """Return how long ago a timestamp was."""
    if not text:
        return UNKNOWN
    try:
        return human_duration(now - seconds_of(text))
    except ValueError:
        return "<invalid>"


def age(obj: Object, now: float) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def pod_status(pod: Object) -> str:
    """Return the word under STATUS: the phase, unless something more telling is known."""
    status = pod.get("status") or {}
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
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    n_ready = sum(bool(one.get("ready")) for one in statuses)
    return f"{n_ready}/{len(pod['spec'].get('containers') or ())}"


def pod_restarts(pod: Object, now: float) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    n_restarts = sum(one.get("restartCount", 0) for one in statuses)
    ended = [((one.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for one in statuses]
    last = max((moment for moment in ended if moment), default=None)
    return f"{n_restarts} ({since(last, now)} ago)" if n_restarts and last else str(n_restarts)


def readiness_gates(pod: Object) -> str:
    gates = pod["spec"].get("readinessGates") or ()
    if not gates:
        return NONE
    conditions = (pod.get("status") or {}).get("conditions") or ()
    true = {one.get("type") for one in conditions if one.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in true for gate in gates)}/{len(gates)}"


def node_status(node: Object) -> str:
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = next((one.get("status") for one in conditions if one.get("type") == "Ready"), None)
    words = ["Ready" if ready == "True" else "NotReady" if ready is not None else "Unknown"]
    if (node.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def node_roles(node: Object) -> str:
    labels = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return ",".join(sorted(role for role in roles if role)) or NONE


def node_address(node: Object, kind: str) -> str:
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((one["address"] for one in addresses if one.get("type") == kind), NONE)


def selector_text(selector: Any) -> str:
    if not selector:
        return NONE
    parts = []
    for key, operator, values in sorted(requirements_of(selector)):
        if operator == "In":
            parts.append(f"{key}={values[0]}" if len(values) == 1 else f"{key} in ({','.join(values)})")
        elif operator == "NotIn":
            parts.append(f"{key} notin ({','.join(values)})")
        else:
            parts.append(key if operator == "Exists" else f"!{key}")
    return ",".join(parts) or NONE


def labels_text(labels: Any) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def access_modes(modes: Any) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in modes or ())


def service_external_ip(service: Object) -> str:
    """Return what is reachable from outside: given addresses, a balancer's, or that one is waited for."""
    spec = service.get("spec") or {}
    given = list(spec.get("externalIPs") or ())
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec.get("type") == "LoadBalancer":
        held = load_balancer_text((service.get("status") or {}).get("loadBalancer"))
        return ",".join([*([held] if held else []), *given]) or "<pending>"
    return ",".join(given) or NONE


def load_balancer_text(status: Object | None) -> str:
    """Return the addresses of a load balancer."""
    found = (one.get("ip") or one.get("hostname") or "" for one in (status or {}).get("ingress") or ())
    return ",".join(sorted({one for one in found if one}))


def service_ports(service: Object) -> str:
    texts = []
    for port in (service.get("spec") or {}).get("ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        texts.append(f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}")
    return ",".join(texts) or NONE


def job_status(job: Object) -> str:
    status = job.get("status") or {}
    true = {one.get("type") for one in status.get("conditions") or () if one.get("status") == "True"}
    for kind, word in (("Complete", "Complete"), ("Failed", "Failed")):
        if kind in true:
            return word
    if "deletionTimestamp" in job["metadata"]:
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if kind in true:
            return kind
    return "Running"


def job_completions(job: Object) -> str:
    spec, status = job.get("spec") or {}, job.get("status") or {}
    done = status.get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    parallel = spec.get("parallelism", 1)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def job_duration(job: Object, now: float) -> str:
    status = job.get("status") or {}
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    return human_duration((seconds_of(end) if end else now) - seconds_of(start))


def endpoints_text(obj: Object) -> str:
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
    series = event.get("series") or {}
    last = event.get("lastTimestamp") or series.get("lastObservedTime") or event.get("eventTime")
    first = event.get("firstTimestamp") or event.get("eventTime")
    count = series.get("count") or event.get("count") or 1
    if count > 1:
        return f"{since(last, now)} (x{count} over {since(first, now)})"
    return since(last or event["metadata"].get("creationTimestamp"), now)


def claim_state(claim: Object) -> str:
    status = claim.get("status") or {}
    if "deletionTimestamp" in claim["metadata"]:
        return "deleted" + (",allocated" if status.get("allocation") else "")
    if not status.get("allocation"):
        return "pending"
    return "allocated,reserved" if status.get("reservedFor") else "allocated"


def token_audiences(driver: Object) -> str:
    """Return for whom a storage driver wants tokens."""
    wanted = [str(one.get("audience", "")) for one in (driver.get("spec") or {}).get("tokenRequests") or ()]
    return ",".join(wanted) or "<unset>"
