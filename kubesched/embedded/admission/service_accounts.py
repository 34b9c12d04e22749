"""The ServiceAccount admission plugin: every pod runs as somebody.

In: a new pod and the accounts of its namespace. Out: the same pod, in place, with an account's name and the pull secrets
of that account; or a refusal when it names one that is not there. A namespace without an account called `default` is one
that no controller looks after, as in a server on its own: its pods stay as they are. Tokens are not mounted: nobody reads
them.
"""

from __future__ import annotations

from kubesched.embedded.context import Context
from kubesched.embedded.http.refusals import forbidden
from kubesched.embedded.resources import Object, Resource

DEFAULT = "default"


def apply_service_account(context: Context, resource: Resource, pod: Object) -> None:
    """Give a pod its service account."""
    spec, namespace = pod["spec"], pod["metadata"]["namespace"]
    accounts = context.resource("serviceaccounts")
    if context.find(accounts, namespace, DEFAULT) is None:
        return
    name = spec.setdefault("serviceAccountName", DEFAULT)
    spec["serviceAccount"] = name
    entry = context.find(accounts, namespace, name)
    if entry is None:
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise forbidden(resource, pod["metadata"]["name"], why)
    if entry.obj.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(one) for one in entry.obj["imagePullSecrets"]]
