"""The columns of each resource's table, as `kubectl get` shows them on a cluster.

One paragraph per resource: its columns, separated by bars. A column is `Title: cell`, and `Title*` is shown only with -o wide.
Its cell is one of

    .spec.nodeName       a field; `[]` after a list stands for each item, and the texts are joined by commas
    #.spec.replicas      a field that is a number, 0 when it is not there
    count .secrets       the length of a list
    pod_status           a function of cells.py, of the object
    labels_text .spec    a function of cells.py, of a field
    usage(cpu)           a function of cells.py, with more arguments

`=<none>` is what stands there for a field that is not there, `:boolean` the type of a column that holds no text.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from kubesched.embedded.printing import cells
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.schema.tables import paragraphs

Cell = Callable[[Object, float], Any]

_USUAL = {"Name": ".metadata.name", "Age": "age", "Created At": ".metadata.creationTimestamp"}
_TABLES = """
pods: Name | Ready: pod_ready | Status: pod_status | Restarts: pod_restarts | Age | IP*: .status.podIP =<none> | Node*:
  .spec.nodeName =<none> | Nominated Node*: .status.nominatedNodeName =<none> | Readiness Gates*: readiness_gates
nodes: Name | Status: node_status | Roles: node_roles | Age | Version: .status.nodeInfo.kubeletVersion | Internal-IP*:
  node_address(InternalIP) | External-IP*: node_address(ExternalIP) | OS-Image*: .status.nodeInfo.osImage =<unknown> |
  Kernel-Version*: .status.nodeInfo.kernelVersion =<unknown> | Container-Runtime*:
  .status.nodeInfo.containerRuntimeVersion =<unknown>
namespaces: Name | Status: phase | Age
services: Name | Type: .spec.type | Cluster-IP: .spec.clusterIP =<none> | External-IP: service_external_ip | Port(s):
  service_ports | Age | Selector*: labels_text .spec.selector
endpoints: Name | Endpoints: endpoints_text | Age
configmaps: Name | Data: n_data | Age
secrets: Name | Type: .type | Data: n_data | Age
serviceaccounts: Name | Secrets: count .secrets | Age
events: Last Seen: event_last_seen | Type: .type | Reason: .reason | Object: event_object | Subobject*:
  .involvedObject.fieldPath | Source*: event_source | Message: event_message | First Seen*: event_first_seen | Count*:
  .count =1 | Name*
persistentvolumes: Name | Capacity: .spec.capacity.storage | Access Modes: access_modes .spec.accessModes | Reclaim Policy:
  .spec.persistentVolumeReclaimPolicy | Status: phase | Claim: pair(namespace,name) .spec.claimRef |
  StorageClass: .spec.storageClassName |
  VolumeAttributesClass: .spec.volumeAttributesClassName =<unset> | Reason: .status.reason | Age | VolumeMode*:
  .spec.volumeMode =<unset>
persistentvolumeclaims: Name | Status: phase | Volume: .spec.volumeName | Capacity: bound_capacity | Access Modes:
  bound_modes | StorageClass: .spec.storageClassName | VolumeAttributesClass: .spec.volumeAttributesClassName =<unset> |
  Age | VolumeMode*: .spec.volumeMode =<unset>
replicationcontrollers: Name | Desired: #.spec.replicas | Current: #.status.replicas | Ready: #.status.readyReplicas | Age |
  Containers*: .spec.template.spec.containers[].name | Images*: .spec.template.spec.containers[].image
deployments.apps: Name | Ready: ready_ratio | Up-to-date: .status.updatedReplicas =0 | Available:
  .status.availableReplicas =0 | Age | Containers*: .spec.template.spec.containers[].name | Images*:
  .spec.template.spec.containers[].image | Selector*: selector_text .spec.selector
replicasets.apps: Name | Desired: #.spec.replicas | Current: #.status.replicas | Ready: #.status.readyReplicas | Age |
  Containers*: .spec.template.spec.containers[].name | Images*: .spec.template.spec.containers[].image | Selector*:
  selector_text .spec.selector
statefulsets.apps: Name | Ready: ready_ratio | Age | Containers*: .spec.template.spec.containers[].name | Images*:
  .spec.template.spec.containers[].image
daemonsets.apps: Name | Desired: #.status.desiredNumberScheduled | Current: #.status.currentNumberScheduled | Ready:
  #.status.numberReady | Up-to-date: #.status.updatedNumberScheduled | Available: #.status.numberAvailable |
  Node Selector: labels_text .spec.template.spec.nodeSelector | Age | Containers*: .spec.template.spec.containers[].name |
  Images*: .spec.template.spec.containers[].image | Selector*: selector_text .spec.selector
jobs.batch: Name | Status: job_status | Completions: job_completions | Duration: job_duration | Age | Containers*:
  .spec.template.spec.containers[].name | Images*: .spec.template.spec.containers[].image | Selector*: selector_text
  .spec.selector
cronjobs.batch: Name | Schedule: .spec.schedule | Timezone: .spec.timeZone =<none> | Suspend: truth .spec.suspend
  :boolean | Active: count .status.active | Last Schedule: last_schedule | Age | Containers*:
  .spec.jobTemplate.spec.template.spec.containers[].name | Images*: .spec.jobTemplate.spec.template.spec.containers[].image |
  Selector*: selector_text .spec.jobTemplate.spec.selector
poddisruptionbudgets.policy: Name | Min Available: text .spec.minAvailable =N/A | Max Unavailable: text
  .spec.maxUnavailable =N/A | Allowed Disruptions: #.status.disruptionsAllowed | Age
horizontalpodautoscalers.autoscaling: Name | Reference: pair(kind,name) .spec.scaleTargetRef =/ | Targets: autoscaler_targets |
  MinPods: text .spec.minReplicas =<unset> | MaxPods: .spec.maxReplicas =0 | Replicas: .status.currentReplicas =0 | Age
leases.coordination.k8s.io: Name | Holder: .spec.holderIdentity | Age
priorityclasses.scheduling.k8s.io: Name | Value: #.value | Global-Default: .globalDefault =false :boolean | Age |
  PreemptionPolicy: .preemptionPolicy
storageclasses.storage.k8s.io: Name: class_name(storageclass) | Provisioner: .provisioner | ReclaimPolicy: .reclaimPolicy |
  VolumeBindingMode: .volumeBindingMode | AllowVolumeExpansion: .allowVolumeExpansion =false | Age
csidrivers.storage.k8s.io: Name | AttachRequired: .spec.attachRequired =true :boolean | PodInfoOnMount:
  .spec.podInfoOnMount =false :boolean | StorageCapacity: .spec.storageCapacity =false :boolean | TokenRequests:
  .spec.tokenRequests[].audience =<unset> | RequiresRepublish: .spec.requiresRepublish =false :boolean | Modes:
  .spec.volumeLifecycleModes[] | Age
csinodes.storage.k8s.io: Name | Drivers: count .spec.drivers | Age
volumeattachments.storage.k8s.io: Name | Attacher: .spec.attacher | PV: .spec.source.persistentVolumeName | Node:
  .spec.nodeName | Attached: .status.attached =false :boolean | Age
resourceclaims.resource.k8s.io: Name | State: claim_state | Age
resourceslices.resource.k8s.io: Name | Node: .spec.nodeName =<unset> | Driver: .spec.driver | Pool: .spec.pool.name | Age
customresourcedefinitions.apiextensions.k8s.io: Name | Created At
limitranges: Name | Created At
resourcequotas: Name | Request: quota(requests) | Limit: quota(limits) | Age
ingresses.networking.k8s.io: Name | Class: .spec.ingressClassName =<none> | Hosts: ingress_hosts | Address:
  load_balancer_text .status.loadBalancer | Ports: ingress_ports | Age
ingressclasses.networking.k8s.io: Name: class_name(ingressclass) | Controller: .spec.controller | Parameters:
  class_parameters | Age
networkpolicies.networking.k8s.io: Name | Pod-Selector: selector_text .spec.podSelector | Age
runtimeclasses.node.k8s.io: Name | Handler: .handler | Age
endpointslices.discovery.k8s.io: Name | AddressType: .addressType | Ports: slice_ports | Endpoints: slice_endpoints | Age
roles.rbac.authorization.k8s.io: Name | Created At
clusterroles.rbac.authorization.k8s.io: Name | Created At
rolebindings.rbac.authorization.k8s.io: Name | Role: pair(kind,name) .roleRef =/ | Age | Users*: subjects(User) | Groups*:
  subjects(Group) | ServiceAccounts*: subjects(ServiceAccount)
clusterrolebindings.rbac.authorization.k8s.io: Name | Role: pair(kind,name) .roleRef =/ | Age | Users*: subjects(User) |
  Groups*: subjects(Group) | ServiceAccounts*: subjects(ServiceAccount)
validatingwebhookconfigurations.admissionregistration.k8s.io: Name | Webhooks: count .webhooks | Age
mutatingwebhookconfigurations.admissionregistration.k8s.io: Name | Webhooks: count .webhooks | Age
validatingadmissionpolicies.admissionregistration.k8s.io: Name | Validations: count .spec.validations | ParamKind:
  pair(apiVersion,kind) .spec.paramKind =<unset> | Age
mutatingadmissionpolicies.admissionregistration.k8s.io: Name | Mutations: count .spec.mutations | ParamKind:
  pair(apiVersion,kind) .spec.paramKind =<unset> | Age
validatingadmissionpolicybindings.admissionregistration.k8s.io: Name | PolicyName: .spec.policyName | ParamRef:
  param_ref .spec.paramRef | Age
mutatingadmissionpolicybindings.admissionregistration.k8s.io: Name | PolicyName: .spec.policyName | ParamRef:
  param_ref .spec.paramRef | Age
nodes.metrics.k8s.io: Name | cpu: usage(cpu) | memory: usage(memory) | Window: .window
pods.metrics.k8s.io: Name | cpu: usage(cpu) | memory: usage(memory) | Window: .window
apiservices.apiregistration.k8s.io: Name | Service: pair(namespace,name) .spec.service =Local | Available: api_available | Age
"""
_COLUMNS = paragraphs(_TABLES)


class Column:
    """A column: its title, its cell as a function of object and time, and whether it is shown only with -o wide."""

    __slots__ = ("cell", "kind", "title", "wide")

    def __init__(self, title: str, cell: Cell, wide: bool = False, kind: str = "string") -> None:
        self.title = title
        self.cell = cell
        self.wide = wide
        self.kind = kind

    @property
    def definition(self) -> Object:
        return {
            "name": self.title,
            "type": self.kind,
            "format": "name" if self.title == "Name" else "",
            "description": "",
            "priority": 1 if self.wide else 0,
        }


def field_cell(steps: list[str], default: Any = "") -> Cell:
    """Return the cell that shows a field. A step that ends in `[]` is a list; the cell joins what its items hold."""

    def look(found: Any, at: int) -> Any:
        for number, step in enumerate(steps[at:], at):
            name = step.removesuffix("[]")
            found = found.get(name) if isinstance(found, dict) and name else found
            if name != step:
                return ",".join(str(look(one, number + 1) or "") for one in found or ()) or None
        return found

    def cell(obj: Object, now: float) -> Any:
        found = look(obj, 0)
        return default if found is None else found

    return cell


@cache
def columns_of_table(table: str) -> list[Column]:
    """Return the columns of a built-in resource; one without a paragraph has a name and an age."""
    return [_read(column) for column in _COLUMNS.get(table, "Name | Age").split(" | ")]


def _read(column: str) -> Column:
    """Return the column that a few words of the table describe."""
    title, _, written = column.partition(": ")
    name = title.rstrip("*")
    words = (written or _USUAL[name]).split()
    kind = "string"
    default: Any = ""
    if words[-1].startswith(":"):
        kind = words.pop()[1:]
    if words[-1].startswith("="):
        text = words.pop()[1:]
        default = msgspec.json.decode(text) if text in ("true", "false") or text.isdecimal() else text
    if words[0].startswith("#"):
        kind, default, words = "integer", 0, [words[0][1:]]
    elif words[0] == "count":
        kind = "integer"
    look = field_cell(words[-1].split(".")[1:], default)
    if words[0].startswith("."):
        cell = look
    else:
        name_of, _, given = words[0].rstrip(")").partition("(")
        function, arguments = getattr(cells, name_of), given.split(",") if given else []
        if len(words) == 2:
            cell = lambda obj, now: function(look(obj, now), *arguments)  # noqa: E731
        elif "now" in inspect.signature(function).parameters:
            cell = function
        else:
            cell = lambda obj, now: function(obj, *arguments)  # noqa: E731
    return Column(name, cell, title != name, kind)
