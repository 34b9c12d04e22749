"""What we deploy: every manifest is a valid object, grants exactly what the client does, and names things that exist."""

from __future__ import annotations

import asyncio
import copy
import json
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from go_templates import Templates

from kubesched.cli import cli
from kubesched.embedded import ObjectStore
from kubesched.embedded.schema import custom_resources
from kubesched.embedded.schema.checking import settle
from kubesched.kube.api import codec
from kubesched.kube.api.kinds import INFO
from kubesched.kube.api.meta import ObjectMeta, ObjectReference, TopLevel
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.resource import ResourceClaim
from kubesched.kube.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.kube.api.workload import PodGroup
from kubesched.kube.client.access_reviews import Reviews
from kubesched.kube.client.informers.resources import WATCH_SET, watch_set
from kubesched.kube.client.leases.locks import LeaseLock, Record
from kubesched.kube.client.timing import SYSTEM_CLOCK
from kubesched.kube.client.writes.recorder import CORE_V1, EVENTS_V1, Broadcaster
from kubesched.kube.client.writes.writer import Writer
from kubesched.scheduler.config import Gates, load
from kubesched.server.app import Scheduler
from kubesched.server.options.options import Options, read_options
from kubesched.telemetry.metrics import FAMILIES
from kubesched.tools.serve.metrics import ServeMetrics

Object = dict[str, Any]

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "kubesched"
VARIANTS = ("second-scheduler", "replacement")
LEASES = {"second-scheduler": "kubesched", "replacement": "kube-scheduler"}


# --- rendering --------------------------------------------------------------------------------------------------------


def chart(release: str = "kubesched", namespace: str = "kube-system", **values: Any) -> list[Object]:
    """Render the chart with some values changed."""
    about = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    given = merged(yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")), values)
    scope = {
        "Values": given,
        "Chart": {name[0].upper() + name[1:]: value for name, value in about.items()},
        "Release": {"Name": release, "Namespace": namespace, "Service": "Helm"},
    }
    templates = Templates()
    files = {file.name: templates.add(file.read_text(encoding="utf-8")) for file in sorted((CHART / "templates").iterdir())}
    objects = []
    for name, nodes in files.items():
        text = templates.render(nodes, scope, scope)
        if name.endswith(".yaml"):
            objects += [found for found in yaml.safe_load_all(text) if found is not None]
    return objects


def merged(base: Any, over: Any) -> Any:
    if isinstance(base, dict) and isinstance(over, dict):
        return {name: merged(base.get(name), over[name]) if name in over else base[name] for name in {**base, **over}}
    return over


def kustomized(variant: str, tmp_path: Path | None = None, components: tuple[str, ...] = ()) -> list[Object]:
    """Build a variant with kubectl's own kustomize."""
    folder = DEPLOY / "kustomize" / variant
    if components:
        assert tmp_path is not None
        shutil.copytree(DEPLOY / "kustomize", tmp_path / "kustomize")
        folder = tmp_path / "kustomize" / variant
        file = folder / "kustomization.yaml"
        file.write_text(f"{file.read_text(encoding='utf-8')}components: [{', '.join(components)}]\n")
    made = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return list(yaml.safe_load_all(made.stdout))


needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl to build kustomizations")
needs_helm = pytest.mark.skipif(shutil.which("helm") is None, reason="there is no helm; the chart is rendered by our own")


def base_files() -> list[Object]:
    """Return the objects of the kustomize base as they are written."""
    return files_of("base")


def files_of(name: str) -> list[Object]:
    """Return the objects of a kustomization's own files as they are written."""
    folder = DEPLOY / "kustomize" / name
    files = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    return [found for file in files for found in yaml.safe_load_all((folder / file).read_text(encoding="utf-8"))]


CHARTS = {
    "as it comes": {},
    "replacement": {"mode": "replacement"},
    "everything": {
        "profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}],
        "config": {"podMaxBackoffSeconds": 20},
        "extraArgs": ["--feature-gates=OpportunisticBatching=false"],
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "nodeSelector": {"pool": "system"},
        "podAnnotations": {"note": "x"},
        "imagePullSecrets": [{"name": "pull"}],
        "image": {"tag": "v1"},
    },
    "little": {"podDisruptionBudget": {"enabled": False}, "replicas": 1},
}


def all_builds() -> dict[str, list[Object]]:
    builds = {f"helm, {name}": chart(**values) for name, values in CHARTS.items()}
    builds["helm, elsewhere"] = chart("mine", "scheduling")
    builds["kustomize base"] = base_files()
    builds["static pod"] = list(yaml.safe_load_all((DEPLOY / "static-pod" / "kubesched.yaml").read_text(encoding="utf-8")))
    if shutil.which("kubectl") is not None:
        builds |= {f"kustomize, {variant}": kustomized(variant) for variant in VARIANTS}
    return builds


BUILDS = all_builds()


def only(objects: list[Object], kind: str, name: str = "") -> Object:
    (found,) = [one for one in objects if one["kind"] == kind and name in ("", one["metadata"]["name"])]
    return found


# --- every manifest is a valid object ---------------------------------------------------------------------------------


def test_every_yaml_file_parses() -> None:
    files = [file for file in DEPLOY.rglob("*.yaml") if CHART / "templates" not in file.parents]
    assert len(files) >= 12
    for file in files:
        assert all(isinstance(found, dict) for found in yaml.safe_load_all(file.read_text(encoding="utf-8"))), file


@pytest.mark.parametrize("build", [*BUILDS, "shadow"])
def test_an_api_server_takes_every_object_and_knows_every_field(build: str) -> None:
    store = ObjectStore()
    for name in ("kube-system", "scheduling"):
        if name != "kube-system":
            store.create("namespaces", {"metadata": {"name": name}})
    for obj in BUILDS[build] if build != "shadow" else files_of("shadow"):
        if obj["kind"] == "ServiceMonitor":
            continue  # a custom resource; looked at below
        group, _, version = obj["apiVersion"].rpartition("/")
        (resource,) = [
            one for one in store.context.catalogue if (one.group, one.version, one.kind) == (group, version, obj["kind"])
        ]
        unknown = settle(copy.deepcopy(obj), custom_resources.shape_of(resource))
        assert not unknown, f"{obj['kind']} {obj['metadata']['name']}: unknown fields {unknown}"
        namespace = obj["metadata"].get("namespace", "kube-system") if resource.namespaced else ""
        store.create(resource, copy.deepcopy(obj), namespace)


# --- the role is what the client does ---------------------------------------------------------------------------------


VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Auditor:
    """A connection that writes down what is asked for, in the words of RBAC."""

    clock = SYSTEM_CLOCK

    def __init__(self) -> None:
        self.verbs: dict[tuple[str, str], set[str]] = defaultdict(set)
        self.stored = b"{}"  # what a GET finds

    async def request(self, method: str, path: str, body: bytes | None = None, content_type: str = "") -> bytes:
        found = re.fullmatch(r"/(?:api/v1|apis/([^/]+)/[^/]+)(?:/namespaces/[^/]+)?/([^/?]+)(?:/([^/?]+))?(?:/(.+))?", path)
        assert found is not None, path
        group, plural, name, sub = found.groups()
        verb = VERBS.get(method) or ("get" if name else "list")
        self.verbs[group or "", f"{plural}/{sub}" if sub else plural].add(verb)
        return self.stored if method == "PATCH" else body or self.stored


WRITTEN: tuple[tuple[type[TopLevel], str], ...] = (
    # Who does: plugins/volume_binding, plugins/dynamic_resources, engine/groups/pod_groups.
    (PersistentVolume, "update"),
    (PersistentVolumeClaim, "update"),
    (ResourceClaim, "create update delete status"),
    (PodGroup, "patch_status"),
)
CALLS = {"create", "update", "delete", "delete_pod", "patch_pod_status", "patch_status", "bind"}


async def what_the_client_does() -> dict[tuple[str, str], set[str]]:
    """Let the client do everything it can, and return what it asked for."""
    audit = Auditor()
    for row in watch_set([row.gate for row in WATCH_SET if row.gate]):
        for version in row.api_versions[:1]:
            group = version.rpartition("/")[0]
            audit.verbs[group, row.plural] |= {"list", "watch"}
    connection: Any = audit
    writer = Writer(connection)
    pod = Pod(metadata=ObjectMeta(name="p", namespace="a", uid="u"))
    audit.stored = codec.encode(pod)
    await writer.bind(pod, "n")
    await writer._assigned_node(pod)
    await writer.patch_pod_status(pod, {})
    await writer.delete_pod(pod)
    for type_, calls in WRITTEN:
        obj = type_(metadata=ObjectMeta(name="x", namespace="a" if INFO[type_].namespaced else "", uid="u"))
        audit.stored = codec.encode(obj)
        for call in calls.split():
            if call == "status":
                await writer.update(obj, "status")
                # An API server since 1.36 asks for the same verb on a subresource that exists in rules alone.
                audit.verbs["resource.k8s.io", "resourceclaims/binding"].add("update")
            elif call == "patch_status":
                await writer.patch_status(obj, {})
            else:
                await getattr(writer, call)(obj)
    for version in (EVENTS_V1, CORE_V1):
        await tell_twice(Broadcaster(connection, api_version=version))
    reviews = Reviews(connection)
    await reviews.create_token_review({})
    await reviews.create_subject_access_review({})
    return audit.verbs


async def tell_twice(broadcaster: Broadcaster) -> None:
    """Record an event and its repetition, which is patched in."""
    working = asyncio.create_task(broadcaster.run())
    for _ in range(2):
        broadcaster.recorder("x").event(ObjectReference(kind="Pod", name="p", namespace="a"), "Normal", "A", "B", "c")
        await broadcaster.drain()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)


def granted(role: Object) -> dict[tuple[str, str], set[str]]:
    verbs: dict[tuple[str, str], set[str]] = defaultdict(set)
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                verbs[group, resource] |= set(rule["verbs"])
    return dict(verbs)


async def test_the_cluster_role_grants_exactly_what_the_client_does() -> None:
    assert granted(only(base_files(), "ClusterRole")) == dict(await what_the_client_does())


def test_shadow_may_read_what_it_follows_and_write_nothing() -> None:
    """Between what its own role grants and what every cluster's `view` does: exactly the watch set."""
    in_view = {
        *(("", plural) for plural in ("pods", "namespaces", "services", "replicationcontrollers", "persistentvolumeclaims")),
        *(("apps", plural) for plural in ("replicasets", "statefulsets")),
        ("policy", "poddisruptionbudgets"),
    }
    rows = watch_set([row.gate for row in WATCH_SET if row.gate])
    followed = {(row.api_versions[0].rpartition("/")[0], row.plural) for row in rows}
    own = granted(only(files_of("shadow"), "ClusterRole"))
    assert set(own) | in_view == followed and not set(own) & in_view
    assert all(verbs == {"list", "watch"} for verbs in own.values())
    bound = {one["roleRef"]["name"] for one in files_of("shadow") if one["kind"] == "ClusterRoleBinding"}
    assert bound == {"kubesched-shadow", "view"}


def test_shadow_is_deployed_with_flags_and_a_configuration_that_it_takes() -> None:
    deployment = only(files_of("shadow"), "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    command, *flags = container["args"]
    asked = cli.get_command(click.Context(cli), command)
    assert asked is not None
    known = {name for parameter in asked.params for name in parameter.opts}
    assert {flag.partition("=")[0] for flag in flags} <= known
    assert {probe["httpGet"]["path"] for probe in (container["livenessProbe"], container["readinessProbe"])} == {
        "/healthz",
        "/readyz",
    }
    context = container["securityContext"]
    assert context["readOnlyRootFilesystem"] and context["capabilities"] == {"drop": ["ALL"]}
    text = (DEPLOY / "kustomize" / "shadow" / "config.yaml").read_text(encoding="utf-8")
    assert load(text, gates=Gates.defaults(), registry=Scheduler.catalogue()).profiles[0].scheduler_name == "default-scheduler"


def test_every_call_that_writes_is_among_those_that_were_audited() -> None:
    """A new kind of write, anywhere, must be looked at here: it may need a verb that nobody has granted."""
    found = set()
    for file in (ROOT / "kubesched").rglob("*.py"):
        where = file.relative_to(ROOT / "kubesched")
        if where.parts[0] == "scheduler":
            found |= {
                (str(where), call) for call in re.findall(r"writer\.(\w+)\(", file.read_text(encoding="utf-8")) if call in CALLS
            }
    assert {(where, call) for where, call in found if call not in ("bind", "patch_pod_status", "delete_pod")} == {
        ("scheduler/engine/groups/group_conditions.py", "patch_status"),
        ("scheduler/plugins/volume_binding/binding.py", "update"),
        ("scheduler/plugins/dynamic_resources/plugin.py", "create"),
        ("scheduler/plugins/dynamic_resources/writes.py", "create"),
        ("scheduler/plugins/dynamic_resources/writes.py", "update"),
        ("scheduler/plugins/dynamic_resources/writes.py", "delete"),
    }


async def test_the_lease_role_grants_what_the_election_does() -> None:
    audit = Auditor()
    connection: Any = audit
    lock = LeaseLock(connection, "me", "kube-system", "kubesched")
    await lock.create(Record("me", 15))
    await lock.get()
    await lock.update(Record("me", 15))
    role = only(base_files(), "Role")
    assert granted(role) == dict(audit.verbs)
    by_name = {tuple(rule["verbs"]): rule.get("resourceNames") for rule in role["rules"]}
    assert by_name == {("create",): None, ("get", "update"): ["kubesched"]}  # creating cannot be limited to a name


@pytest.mark.parametrize("build", [build for build in BUILDS if build not in ("static pod",)])
def test_the_roles_are_the_same_everywhere_and_bound_to_who_runs(build: str) -> None:
    objects, base = BUILDS[build], base_files()
    name = only(objects, "Deployment")["metadata"]["name"]
    assert only(objects, "ClusterRole", name)["rules"] == only(base, "ClusterRole")["rules"]
    account = only(objects, "ServiceAccount")["metadata"]
    assert only(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]
    bindings = [one for one in objects if one["kind"] in ("ClusterRoleBinding", "RoleBinding")]
    assert len(bindings) == 3
    roles = {(one["kind"], one["metadata"]["name"]) for one in objects} | {
        ("Role", "extension-apiserver-authentication-reader")
    }
    for binding in bindings:
        (subject,) = binding["subjects"]
        assert (subject["kind"], subject["name"]) == ("ServiceAccount", account["name"])
        assert subject["namespace"] == account.get("namespace", "kube-system")
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in roles


# --- what is named exists ---------------------------------------------------------------------------------------------


def pod_specs() -> dict[str, Object]:
    found = {
        build: only(objects, "Deployment")["spec"]["template"]["spec"]
        for build, objects in BUILDS.items()
        if build != "static pod"
    }
    return found | {"static pod": only(BUILDS["static pod"], "Pod")["spec"]}


PODS = pod_specs()


@pytest.mark.parametrize("build", PODS)
def test_flags_ports_and_probes_are_those_of_the_program(build: str) -> None:
    (container,) = PODS[build]["containers"]
    command, *flags = container["args"]
    assert command == "run"
    options = read_options(flags)  # raises on a flag that does not exist
    assert isinstance(options, Options)
    ports = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["scheme"] == "HTTPS"
        assert ports.get(asked["port"], asked["port"]) == options.serving.secure_port == 10259
        assert asked["path"] == ("/readyz" if probe == "readinessProbe" else "/livez")
        assert asked["path"] in options.authorization.always_allow_paths  # the kubelet shows no credentials
        # A host is given where the program listens on that address alone.
        assert (asked.get("host") or "0.0.0.0") == options.serving.bind_address


@pytest.mark.parametrize("build", PODS)
def test_nothing_runs_with_more_than_it_needs(build: str) -> None:
    spec = PODS[build]
    (container,) = spec["containers"]
    limits = container["securityContext"]
    assert limits["readOnlyRootFilesystem"] is True
    assert limits["allowPrivilegeEscalation"] is False
    assert limits["capabilities"] == {"drop": ["ALL"]}
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    if build != "static pod":
        assert spec["securityContext"]["runAsNonRoot"] is True and spec["securityContext"]["runAsUser"] > 0
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert mounts.keys() == volumes.keys()
    assert [mount["mountPath"] for name, mount in mounts.items() if not mount.get("readOnly")] == ["/tmp"]


def config_text(objects: list[Object]) -> str:
    (found,) = [one for one in objects if one["kind"] == "ConfigMap"]
    mounted = only(objects, "Deployment")["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"]
    assert mounted == found["metadata"]["name"]
    text: str = found["data"]["config.yaml"]
    return text


CONFIGURED = [build for build, objects in BUILDS.items() if any(one["kind"] == "ConfigMap" for one in objects)]


@pytest.mark.parametrize("build", CONFIGURED)
def test_the_configuration_is_one_that_the_program_takes(build: str, tmp_path: Path) -> None:
    objects = BUILDS[build]
    file = tmp_path / "config.yaml"
    file.write_text(config_text(objects))
    configuration = load(file, gates=Gates.defaults(), registry=Scheduler.catalogue())
    election = configuration.leader_election
    assert election.leader_elect
    role = next(one for one in objects if one["kind"] == "Role")
    assert role["rules"][1]["resourceNames"] == [election.resource_name]
    assert role["metadata"]["namespace"] == election.resource_namespace
    if "replacement" in build:
        assert (election.resource_namespace, election.resource_name) == ("kube-system", "kube-scheduler")
        assert [profile.scheduler_name for profile in configuration.profiles] == ["default-scheduler"]
    else:
        assert election.resource_name != "kube-scheduler"
        assert all(profile.scheduler_name != "default-scheduler" for profile in configuration.profiles)


@pytest.mark.parametrize("build", [build for build in BUILDS if build != "static pod"])
def test_selectors_find_the_pods(build: str) -> None:
    objects = BUILDS[build]
    deployment = only(objects, "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"].items()
    service = only(objects, "Service")
    selectors = [deployment["spec"]["selector"]["matchLabels"], service["spec"]["selector"]]
    selectors += [one["spec"]["selector"]["matchLabels"] for one in objects if one["kind"] == "PodDisruptionBudget"]
    assert all(selector.items() <= labels for selector in selectors)
    assert service["spec"]["ports"][0]["targetPort"] in {
        port["name"] for port in deployment["spec"]["template"]["spec"]["containers"][0]["ports"]
    }
    for monitor in [one for one in objects if one["kind"] == "ServiceMonitor"]:
        assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        for endpoint in monitor["spec"]["endpoints"]:
            assert endpoint["port"] == service["spec"]["ports"][0]["name"] and endpoint["scheme"] == "https"


def test_what_the_values_say_arrives() -> None:
    objects = BUILDS["helm, everything"]
    spec = PODS["helm, everything"]
    assert "--feature-gates=OpportunisticBatching=false" in spec["containers"][0]["args"]
    assert spec["containers"][0]["image"] == "kubesched:v1"
    assert spec["nodeSelector"]["pool"] == "system" and spec["tolerations"][0]["key"] == "dedicated"
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert "podMaxBackoffSeconds: 20" in config_text(objects)
    assert only(objects, "ServiceMonitor")["metadata"]["labels"]["release"] == "prometheus"
    assert only(objects, "ClusterRole", "kubesched-metrics-reader")
    assert not [one for one in BUILDS["helm, little"] if one["kind"] in ("PodDisruptionBudget", "ServiceMonitor")]
    replacement = PODS["helm, replacement"]
    assert "node-role.kubernetes.io/control-plane" in replacement["nodeSelector"]
    assert replacement["tolerations"] == [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]


def test_the_values_and_their_schema_name_the_same_things() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = yaml.safe_load((CHART / "values.schema.json").read_text(encoding="utf-8"))
    assert set(values) == set(schema["properties"]) - {"global"}
    for name, part in schema["properties"].items():
        if "properties" in part:
            assert set(values[name]) == set(part["properties"])


def test_the_image_runs_as_nobody_in_particular_and_is_built_in_stages() -> None:
    lines = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line and not line.startswith(("#", " "))]
    assert sum(1 for line in words if line[0] == "FROM") == 2
    last = {line[0]: line for line in words[[line[0] for line in words].index("FROM", 2) :]}
    user = last["USER"][1].partition(":")[0]
    assert int(user) == PODS["helm, as it comes"]["securityContext"]["runAsUser"] > 0
    assert last["ENTRYPOINT"][1] == '["kubesched"]'
    copied = {word.rstrip("/") for line in words if line[0] == "COPY" and "--from=build" not in line for word in line[1:-1]}
    allowed = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    for name in copied:
        assert (ROOT / name).exists() and f"!{name}" in allowed
    assert str(last["EXPOSE"][1]) == "10259"


@needs_kubectl
def test_monitoring_can_be_added_to_a_variant(tmp_path: Path) -> None:
    objects = kustomized("second-scheduler", tmp_path, ("../monitoring",))
    monitor, service = only(objects, "ServiceMonitor"), only(objects, "Service")
    assert monitor["metadata"]["namespace"] == service["metadata"]["namespace"] == "kube-system"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()


@needs_helm
@pytest.mark.parametrize("name", CHARTS)
def test_helm_renders_what_our_renderer_renders(name: str, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(CHARTS[name]))
    made = subprocess.run(
        ["helm", "template", "kubesched", str(CHART), "-n", "kube-system", "-f", str(values)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    theirs = {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(made.stdout) if one}
    ours = {(one["kind"], one["metadata"]["name"]): one for one in chart(**CHARTS[name])}
    assert theirs == ours


# --- monitoring ---------------------------------------------------------------------------------------------------------

RULES = yaml.safe_load((DEPLOY / "kustomize" / "monitoring" / "prometheus-rule.yaml").read_text(encoding="utf-8"))
DASHBOARD = json.loads((DEPLOY / "monitoring" / "grafana-dashboard.json").read_text(encoding="utf-8"))
_SELECTED = re.compile(r"([a-z]\w*_\w+)(?:\{([^}]*)\})?")


def expressions() -> list[str]:
    rules = [rule["expr"] for group in RULES["spec"]["groups"] for rule in group["rules"]]
    return rules + [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


def of_the_service() -> dict[str, set[str]]:
    """Return the labels of the metrics of `serve`, by name."""
    metrics = ServeMetrics()
    metrics.watch(sessions=int, waiting=int, ready=bool)
    metrics.answered("fits", "", 0.1)
    metrics.forked()
    metrics.restarted()
    samples = [sample for family in metrics.registry.collect() for sample in family.samples]
    return {sample.name: {*sample.labels, "job", "pod"} for sample in samples}


def test_alerts_and_panels_ask_for_metrics_and_labels_that_there_are() -> None:
    families = {family.name: {*family.labels, "job", "pod", "le"} for family in FAMILIES} | of_the_service()
    for expression in expressions():
        bare = re.sub(r"by \([^)]*\)|histogram_quantile\(|\$__rate_interval", "", expression)
        asked = [(re.sub("_(bucket|sum|count)$", "", name), labels) for name, labels in _SELECTED.findall(bare)]
        assert asked, expression
        for name, labels in asked:
            assert name in families, f"{expression}: no metric is called {name}"
            assert set(re.findall(r"(\w+)(?:=~?|!~|!=)\"", labels)) <= families[name], f"{expression}: {name} has no such label"
        grouped = {word for group in re.findall(r"by \(([^)]*)\)", expression) for word in group.replace(",", " ").split()}
        assert grouped <= set().union(*(families[name] for name, _ in asked)), expression
        assert all(expression.count(pair[0]) == expression.count(pair[1]) for pair in ("()", "{}", "[]")), expression


PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="there is no promtool (Debian's package prometheus)")
_BUCKET = 'rest_client_rate_limiter_duration_seconds_bucket{le="%s"}'
_SLI = 'scheduler_pod_scheduling_sli_duration_seconds_bucket{attempts="1",le="%s"}'
_FAILURES = 'kubesched_plugin_failures_total{plugin="Slow",extension_point="Filter"}'
# By alert: series that make it fire after 25 minutes, series that do not, and the labels that it takes over from them.
FIRING: dict[str, tuple[dict[str, str], dict[str, str], dict[str, str]]] = {
    "KubeschedHasNoLeader": ({"leader_election_master_status": "0+0x30"}, {"leader_election_master_status": "1+0x30"}, {}),
    "KubeschedPodsWaitActive": (
        {'scheduler_pending_pods{queue="active"}': "500+0x30"},
        {'scheduler_pending_pods{queue="active"}': "50+0x30"},
        {},
    ),
    "KubeschedAttemptsFail": (
        {
            f'scheduler_schedule_attempts_total{{result="{result}"}}': f"0+{n}x30"
            for result, n in (("error", 2), ("scheduled", 8))
        },
        {
            f'scheduler_schedule_attempts_total{{result="{result}"}}': f"0+{n}x30"
            for result, n in (("error", 1), ("scheduled", 19))
        },
        {},
    ),
    "KubeschedSlowPlacement": (
        {_SLI % "5.12": "0+90x30", _SLI % "10.24": "0+100x30", _SLI % "+Inf": "0+100x30"},
        {_SLI % "0.01": "0+100x30", _SLI % "+Inf": "0+100x30"},
        {},
    ),
    "KubeschedHeldBackByItsOwnLimit": (
        {_BUCKET % "0.25": "0+50x30", _BUCKET % "1": "0+100x30", _BUCKET % "+Inf": "0+100x30"},
        {_BUCKET % "0.005": "0+100x30", _BUCKET % "+Inf": "0+100x30"},
        {},
    ),
    "KubeschedPluginBreaks": ({_FAILURES: "0+1x30"}, {_FAILURES: "7+0x30"}, {"plugin": "Slow", "extension_point": "Filter"}),
    "KubeschedConfigurationRefused": (
        {'kubesched_config_reloads_total{result="error"}': "0+0x20 1+0x10"},
        {'kubesched_config_reloads_total{result="error"}': "1+0x30"},
        {"result": "error"},
    ),
    "KubeschedServeNotReady": ({"kubesched_serve_ready": "0+0x30"}, {"kubesched_serve_ready": "1+0x30"}, {}),
    "KubeschedServeRefuses": (
        {f'kubesched_serve_questions_total{{code="{code}"}}': f"0+{n}x30" for code, n in (("OK", 8), ("UNAVAILABLE", 2))},
        {f'kubesched_serve_questions_total{{code="{code}"}}': f"0+{n}x30" for code, n in (("OK", 8), ("INVALID_ARGUMENT", 2))},
        {},
    ),
    "KubeschedServeFollowerEnds": (
        {"kubesched_serve_follower_ends_total": "0+1x30"},
        {"kubesched_serve_follower_ends_total": "3+0x30"},
        {},
    ),
}


def test_every_alert_is_tried() -> None:
    assert set(FIRING) == {rule["alert"] for group in RULES["spec"]["groups"] for rule in group["rules"]}


@needs_promtool
def test_prometheus_takes_every_expression(tmp_path: Path) -> None:
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    plain = [re.sub(r"\$__rate_interval", "5m", expression) for expression in panels]
    records = [{"record": f"panel:{i}", "expr": expression} for i, expression in enumerate(plain)]
    groups = [*RULES["spec"]["groups"], {"name": "panels", "rules": records}]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    done = subprocess.run(
        [str(PROMTOOL), "check", "rules", str(tmp_path / "rules.yaml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
@pytest.mark.parametrize("alert", FIRING)
def test_alerts_fire_when_they_should_and_not_otherwise(alert: str, tmp_path: Path) -> None:
    bad, good, labels = FIRING[alert]
    (rule,) = [rule for group in RULES["spec"]["groups"] for rule in group["rules"] if rule["alert"] == alert]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": RULES["spec"]["groups"]}))
    says = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels[found[1]], rule["annotations"]["summary"])
    fires = [{"exp_labels": {**rule["labels"], **labels}, "exp_annotations": {"summary": says}}]
    cases = [
        {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "alert_rule_test": [{"eval_time": "25m", "alertname": alert, "exp_alerts": expected}],
        }
        for series, expected in ((bad, fires), (good, []))
    ]
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": cases}))
    done = subprocess.run(
        [str(PROMTOOL), "test", "rules", "test.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_chart_is_described_for_who_looks_for_one() -> None:
    chart_file = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    notes = chart_file["annotations"]
    assert notes["artifacthub.io/license"] == "Apache-2.0" and all(isinstance(value, str) for value in notes.values())
    for change in yaml.safe_load(notes["artifacthub.io/changes"]):
        assert change["kind"] in ("added", "changed", "deprecated", "removed", "fixed", "security") and change["description"]


def test_alerts_have_what_the_operator_wants_and_a_row_in_the_docs() -> None:
    page = (ROOT / "docs" / "how-to" / "operating.md").read_text(encoding="utf-8")
    for group in RULES["spec"]["groups"]:
        for rule in group["rules"]:
            assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
            assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
            assert rule["labels"]["severity"] in ("critical", "warning", "info") and rule["annotations"]["summary"]
            assert f"| `{rule['alert']}` |" in page


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    panels = DASHBOARD["panels"]
    assert {"title", "uid", "schemaVersion", "panels", "templating", "time"} <= set(DASHBOARD)
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        assert panel["title"] and panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert place["x"] >= 0 and place["x"] + place["w"] <= 24
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
