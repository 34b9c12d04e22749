"""What we deploy of `serve` and `observe`: least rights, flags that exist, and a chart that says the same as the manifests."""

from __future__ import annotations

import copy
from typing import Any

import click
import pytest
import yaml
from test_deploy import DEPLOY, Object, chart, granted, only

from kubesched.cli import cli
from kubesched.embedded import ObjectStore
from kubesched.embedded.schema import custom_resources
from kubesched.embedded.schema.checking import settle
from kubesched.kube.api.kinds import INFO
from kubesched.kube.client.informers.resources import WATCH_SET, watch_set
from kubesched.tools.serve.service import CALLS
from kubesched.tools.snapshots.captured import _MADE_WITH

COMMANDS = ("serve", "observe")
REVIEWS = {
    ("authentication.k8s.io", "tokenreviews"): {"create"},
    ("authorization.k8s.io", "subjectaccessreviews"): {"create"},
}
READ = {"get", "list", "watch"}
KUEUE = {
    **{("kueue.x-k8s.io", plural): READ for plural in ("workloads", "admissionchecks", "resourceflavors")},
    **{("kueue.x-k8s.io", f"{plural}/status"): {"patch"} for plural in ("workloads", "admissionchecks")},
}


def manifest(command: str) -> list[Object]:
    return list(yaml.safe_load_all((DEPLOY / f"{command}.yaml").read_text(encoding="utf-8")))


def from_chart(command: str, **values: Any) -> list[Object]:
    """Return the objects that a value of the chart adds."""
    plain = {(each["kind"], each["metadata"]["name"]) for each in chart()}
    found = chart(**{command: {"enabled": True, **values}})
    return [each for each in found if (each["kind"], each["metadata"]["name"]) not in plain]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_api_server_takes_every_object_and_knows_every_field(command: str) -> None:
    for objects in (manifest(command), from_chart(command)):
        store = ObjectStore()
        for obj in objects:
            group, _, version = obj["apiVersion"].rpartition("/")
            (resource,) = [
                one for one in store.context.catalogue if (one.group, one.version, one.kind) == (group, version, obj["kind"])
            ]
            assert not settle(copy.deepcopy(obj), custom_resources.shape_of(resource)), obj["metadata"]["name"]
            store.create(resource, copy.deepcopy(obj), obj["metadata"].get("namespace", ""))


@pytest.mark.parametrize("command", COMMANDS)
def test_the_role_is_what_is_followed_and_nothing_of_it_writes(command: str) -> None:
    rows = watch_set([row.gate for row in WATCH_SET if row.gate])
    followed = {(row.api_versions[0].rpartition("/")[0], row.plural) for row in rows}
    own = granted(only(manifest(command), "ClusterRole", f"kubesched-{command}"))
    made_with = {(row.api_versions[0].rpartition("/")[0], row.plural) for row in _MADE_WITH} if command == "observe" else set()
    assert set(own) == followed | made_with | set(REVIEWS)
    assert {key: own[key] for key in REVIEWS} == REVIEWS
    assert all(verbs <= READ for key, verbs in own.items() if key not in REVIEWS)
    assert INFO  # the kinds are loaded


def test_kueue_is_a_role_of_its_own_that_only_those_get_who_ask_for_it() -> None:
    assert granted(only(manifest("serve"), "ClusterRole", "kubesched-serve-kueue")) == KUEUE
    bound = {each["roleRef"]["name"] for each in manifest("serve") if each["kind"] == "ClusterRoleBinding"}
    assert bound == {"kubesched-serve"}
    assert not [each for each in from_chart("serve") if "kueue" in each["metadata"]["name"]]
    asked = from_chart("serve", kueue=True)
    assert granted(only(asked, "ClusterRole", "kubesched-serve-kueue")) == KUEUE
    assert only(asked, "ClusterRoleBinding", "kubesched-serve-kueue")["subjects"][0]["name"] == "kubesched-serve"
    assert "--kueue" in container(asked)["args"]


def container(objects: list[Object]) -> Object:
    (found,) = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(found)


@pytest.mark.parametrize("command", COMMANDS)
def test_flags_ports_and_probes_are_those_of_the_program(command: str) -> None:
    for objects in (manifest(command), from_chart(command)):
        told = container(objects)
        name, *flags = told["args"]
        asked = cli.get_command(click.Context(cli), name)
        assert name == command and asked is not None
        parameters = {option: parameter for parameter in asked.params for option in parameter.opts}
        assert {flag.partition("=")[0] for flag in flags} <= set(parameters)
        ports = {port["name"]: port["containerPort"] for port in told["ports"]}
        given = dict(flag.removeprefix("--").split("=") for flag in flags)
        assert ports["https"] == int(given["secure-port"]) == parameters["--secure-port"].default
        if command == "serve":
            assert ports["grpc"] == int(given["grpc-port"]) == int(parameters["--grpc-port"].default)
        open_paths = parameters["--authorization-always-allow-paths"].default.split(",")
        for probe in ("livenessProbe", "readinessProbe"):
            assert told[probe]["httpGet"]["path"] in open_paths and told[probe]["httpGet"]["scheme"] == "HTTPS"
        service = only(objects, "Service")["spec"]
        assert {port["targetPort"] for port in service["ports"]} == set(ports)
        labels = only(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
        assert service["selector"].items() <= labels.items()
        limits = told["securityContext"]
        assert limits["readOnlyRootFilesystem"] is True and limits["allowPrivilegeEscalation"] is False
        assert limits["capabilities"] == {"drop": ["ALL"]}
        assert only(objects, "Deployment")["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"] is True


def test_callers_may_do_what_is_served_and_viewers_look_only() -> None:
    (caller,) = only(manifest("serve"), "ClusterRole", "kubesched-serve-caller")["rules"]
    assert caller == {"nonResourceURLs": ["/v1/*"], "verbs": ["post", "put", "patch", "delete"]} and CALLS
    (viewer,) = only(manifest("observe"), "ClusterRole", "kubesched-observe-viewer")["rules"]
    assert viewer["verbs"] == ["get", "post"] and viewer["nonResourceURLs"] == ["/ui/*", "/shadow.json"]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_chart_says_the_same_as_the_manifest(command: str) -> None:
    mine = {(each["kind"], each["metadata"]["name"]): each for each in from_chart(command)}
    theirs = {(each["kind"], each["metadata"]["name"]): each for each in manifest(command)}
    theirs.pop(("ClusterRole", "kubesched-serve-kueue"), None)
    image = container(list(mine.values())).pop("image")
    assert image.startswith("kubesched:")
    for each in (mine, theirs):
        each["Deployment", f"kubesched-{command}"]["spec"]["template"]["spec"]["containers"][0].pop("image")
    assert mine == theirs


def test_what_the_values_say_arrives() -> None:
    objects = from_chart("serve", tlsSecret="serving", extraArgs=["--expander"], replicas=3, resources={})
    told = container(objects)
    assert {"--expander", "--tls-cert-file=/etc/kubesched-tls/tls.crt"} <= set(told["args"])
    assert {mount["name"] for mount in told["volumeMounts"]} == {"tmp", "tls"}
    assert only(objects, "Deployment")["spec"]["replicas"] == 3
    assert from_chart("observe", extraArgs=["--seed=3"])[-2]["kind"] == "Deployment"
