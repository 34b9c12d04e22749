"""Authentication and authorization: bearer tokens become users, and users get what roles and bindings grant them.

In: a token file, and the RBAC objects in the store. Out: the user of a request, and whether a user may do something. Without a
token file every caller is an administrator. Some rights need no role in the store: administrators (system:masters) may do
everything, everybody may read health and version, every user with a token discovery, and system:kube-scheduler may do what a
scheduler does. The roles cluster-admin and extension-apiserver-authentication-reader are built in.
"""

from __future__ import annotations

import csv
import dataclasses
import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubesched.embedded.api_errors import invalid, unauthorized
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.validation import field
from kubesched.embedded.verbs.context import Context
from kubesched.errors import ConfigError, Forbidden

RBAC = "rbac.authorization.k8s.io"
AUTHENTICATION_CONFIG = "extension-apiserver-authentication"
"""The ConfigMap in kube-system that says whom to trust, for servers that let the API server vouch for their callers."""


def _rules(table: str) -> list[Object]:
    """Read rules from lines of `verbs: resources or paths`.

    A resource is `name.group`; a single object of it stands in brackets.
    """
    found: list[Object] = []
    for line in table.strip().splitlines():
        verbs, _, targets = line.strip().partition(": ")
        for target in targets.split():
            rule: Object = {"verbs": verbs.split()}
            if target.startswith("/"):
                found.append(rule | {"nonResourceURLs": [target]})
                continue
            target, _, name = target.rstrip(")").partition("(")
            resource, _, group = target.partition(".")
            found.append(rule | {"apiGroups": [group], "resources": [resource]} | ({"resourceNames": [name]} if name else {}))
    return found


_EVERYBODY = _rules("get: /healthz /livez /readyz /version /healthz/* /livez/* /readyz/*")
_AUTHENTICATED = _rules("""
get: / /api /api/* /apis /apis/* /openapi /openapi/*
create: selfsubjectaccessreviews.authorization.k8s.io selfsubjectrulesreviews.authorization.k8s.io
create: selfsubjectreviews.authentication.k8s.io
""")
_SCHEDULER = _rules("""
create patch update: events events.events.k8s.io
create list watch: leases.coordination.k8s.io
get update: leases.coordination.k8s.io(kube-scheduler)
get list watch: nodes namespaces configmaps replicationcontrollers services replicasets.apps statefulsets.apps
get list watch: poddisruptionbudgets.policy *.storage.k8s.io *.resource.k8s.io
get list watch: podgroups.scheduling.k8s.io compositepodgroups.scheduling.k8s.io workloads.scheduling.k8s.io
delete get list watch: pods
create: bindings pods/binding tokenreviews.authentication.k8s.io subjectaccessreviews.authorization.k8s.io
patch update: pods/status resourceclaims/status.resource.k8s.io podgroups/status.scheduling.k8s.io
patch update get list watch: persistentvolumeclaims persistentvolumes
create delete update patch: resourceclaims.resource.k8s.io
""")
_ADMINISTRATOR: list[Object] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
]


@dataclass(frozen=True, slots=True)
class User:
    """The sender of a request."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


ADMIN = User("system:admin", ("system:masters", "system:authenticated"))
ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """What a request does: a verb on a resource, or on a path if there is no resource (RBAC's `attributes`)."""

    verb: str  # get, list, watch, create, update, patch, delete, deletecollection
    group: str = ""
    resource: str = ""  # with its subresource: pods/binding
    namespace: str = ""
    name: str = ""
    path: str = ""


def read_tokens(path: Path) -> dict[str, User]:
    """Read a token file: lines of `token,user,uid,"group,group"`, as kube-apiserver's --token-auth-file."""
    tokens: dict[str, User] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.reader(file, skipinitialspace=True), 1):
                if not row or row[0].startswith("#"):
                    continue
                if len(row) < 3 or not row[0] or not row[1]:
                    raise ConfigError("token-file", f"{path}, line {number}: expected token,user,uid and optional groups")
                groups = tuple(one.strip() for one in row[3].split(",") if one.strip()) if len(row) > 3 else ()
                tokens[row[0]] = User(row[1], (*groups, "system:authenticated"), row[2])
    except OSError as error:
        raise ConfigError("token-file", f"{path}: {error.strerror}") from error
    return tokens


class Access:
    """Authenticates and authorizes for one server."""

    def __init__(self, context: Context, tokens: Mapping[str, User] | None = None) -> None:
        """With no `tokens` at all, every caller is an administrator."""
        self._context = context
        self._tokens = tokens

    def user_for(self, authorization: str) -> User:
        """Return the user of an Authorization header; 401 for a token that is not known."""
        if self._tokens is None:
            return ADMIN
        scheme, _, token = authorization.partition(" ")
        if not authorization:
            return ANONYMOUS
        user = self.user_of_token(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise unauthorized()
        return user

    def user_of_token(self, token: str) -> User | None:
        """Return the user of a token, or None. All tokens are compared in full, so the time tells nothing about them."""
        found = None
        for known, user in (self._tokens or {}).items():
            if hmac.compare_digest(known.encode(), token.encode()):
                found = user
        return found

    def require(self, user: User, wanted: AccessRequest) -> None:
        """Refuse with 403 what a user may not do."""
        if not self.allows(user, wanted):
            details = {"kind": wanted.resource, "name": wanted.name, "group": wanted.group} if wanted.resource else {}
            found = {key: value for key, value in details.items() if value}
            raise Forbidden(403, "Forbidden", _refusal(user, wanted), details=found)

    def allows(self, user: User, wanted: AccessRequest) -> bool:
        """Return whether a user may do something."""
        if "system:masters" in user.groups:
            return True
        return any(_grants(rule, wanted) for rule in self._rules(user, wanted.namespace))

    def _rules(self, user: User, namespace: str) -> Iterator[Object]:
        """Yield every rule that holds for a user in a namespace."""
        yield from _EVERYBODY
        if "system:authenticated" in user.groups:
            yield from _AUTHENTICATED
        if user.name == "system:kube-scheduler":
            yield from _SCHEDULER
        context = self._context
        for entry in context.storage.table(f"clusterrolebindings.{RBAC}").entries.values():
            if _binds(entry.obj, user):
                yield from self._role_rules(entry.obj.get("roleRef") or {}, "")
        if namespace:
            for entry in context.storage.table(f"rolebindings.{RBAC}").in_namespace(namespace):
                if _binds(entry.obj, user):
                    yield from self._role_rules(entry.obj.get("roleRef") or {}, namespace)

    def _role_rules(self, reference: Object, namespace: str) -> list[Object]:
        """Return the rules of the role that a binding refers to; none if it does not exist."""
        name = reference.get("name", "")
        if reference.get("kind") == "ClusterRole":
            if name == "cluster-admin":
                return _ADMINISTRATOR
            entry = self._context.storage.table(f"clusterroles.{RBAC}").entries.get(name)
        elif (namespace, name) == ("kube-system", f"{AUTHENTICATION_CONFIG}-reader"):
            return _rules(f"get list watch: configmaps({AUTHENTICATION_CONFIG})")
        else:
            entry = self._context.storage.table(f"roles.{RBAC}").entries.get(f"{namespace}/{name}")
        return entry.obj.get("rules") or [] if entry is not None else []

    def review(self, table: str, obj: Object, user: User) -> Object:
        """Answer a TokenReview, a SubjectAccessReview, or a review about the caller."""
        spec = obj.get("spec") if isinstance(obj.get("spec"), dict) else {}
        assert isinstance(spec, dict)
        if table.startswith("tokenreviews"):
            known = self.user_of_token(str(spec.get("token") or ""))
            if known is None:
                return {"authenticated": False, "error": "invalid bearer token"}
            return {"authenticated": True, "user": _user_info(known)}
        if table.startswith("selfsubjectreviews"):
            return {"userInfo": _user_info(user)}
        if table.startswith("selfsubjectrulesreviews"):
            return self._rules_of(user, str(spec.get("namespace") or ""))
        if not table.startswith("selfsubject"):
            user = User(str(spec.get("user") or ""), tuple(str(one) for one in spec.get("groups") or ()))
        wanted = _request_of(spec)
        allowed = self.allows(user, wanted)
        return {"allowed": allowed} if allowed else {"allowed": False, "reason": _refusal(user, wanted)}

    def _rules_of(self, user: User, namespace: str) -> Object:
        """Return everything that a user may do in a namespace, for `kubectl auth can-i --list`."""
        rules = list(self._rules(user, namespace))
        if "system:masters" in user.groups:
            rules += _ADMINISTRATOR
        return {
            "resourceRules": [rule for rule in rules if rule.get("resources")],
            "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
            "incomplete": False,
        }


def _user_info(user: User) -> Object:
    info: Object = {"username": user.name, "groups": list(user.groups)}
    return info | ({"uid": user.uid} if user.uid else {})


def _request_of(spec: Object) -> AccessRequest:
    """Return what a SubjectAccessReview is about."""
    attributes: Any = spec.get("resourceAttributes")
    if isinstance(attributes, dict):
        resource, sub = str(attributes.get("resource") or ""), str(attributes.get("subresource") or "")
        return AccessRequest(
            str(attributes.get("verb") or ""),
            str(attributes.get("group") or ""),
            f"{resource}/{sub}" if sub else resource,
            str(attributes.get("namespace") or ""),
            str(attributes.get("name") or ""),
        )
    attributes = spec.get("nonResourceAttributes")
    attributes = attributes if isinstance(attributes, dict) else {}
    return AccessRequest(str(attributes.get("verb") or ""), path=str(attributes.get("path") or ""))


def check_review(resource: Resource, body: Object) -> None:
    """Refuse a review that is about nothing, or about two things."""
    spec = body.get("spec") or {}
    attributes = [name for name in ("resourceAttributes", "nonResourceAttributes") if isinstance(spec, dict) and spec.get(name)]
    if len(attributes) != 1:
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        cause = field.invalid("spec.resourceAttributes", None, text)
        raise invalid(dataclasses.replace(resource, kind=""), "", [cause])


def _binds(binding: Object, user: User) -> bool:
    """Return whether a binding is for a user: by name, by group, or as a service account."""
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name")
        if (kind == "User" and name == user.name) or (kind == "Group" and name in user.groups):
            return True
        if kind == "ServiceAccount" and user.name == f"system:serviceaccount:{subject.get('namespace', '')}:{name}":
            return True
    return False


def _grants(rule: Object, wanted: AccessRequest) -> bool:
    """Return whether a rule allows a request."""
    if not _listed(rule.get("verbs"), wanted.verb):
        return False
    if not wanted.resource:
        return any(_covers(pattern, wanted.path) for pattern in rule.get("nonResourceURLs") or ())
    if not _listed(rule.get("apiGroups"), wanted.group):
        return False
    resources = rule.get("resources") or ()
    _, slash, sub = wanted.resource.partition("/")
    if wanted.resource not in resources and "*" not in resources and not (slash and f"*/{sub}" in resources):
        return False
    names = rule.get("resourceNames")
    return not names or wanted.name in names


def _listed(allowed: Any, one: str) -> bool:
    return "*" in (allowed or ()) or one in (allowed or ())


def _covers(pattern: str, path: str) -> bool:
    """Return whether a path matches a pattern; a trailing * stands for the rest."""
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern


def _refusal(user: User, wanted: AccessRequest) -> str:
    """Return why a request is refused, in the words of kube-apiserver."""
    if not wanted.resource:
        return f'forbidden: User "{user.name}" cannot {wanted.verb} path "{wanted.path}"'
    what = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    what += f' "{wanted.name}"' if wanted.name else ""
    where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    text = f'User "{user.name}" cannot {wanted.verb} resource "{wanted.resource}" in API group "{wanted.group}" {where}'
    return f"{what} is forbidden: {text}"
