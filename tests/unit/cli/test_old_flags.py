"""Flags of old releases, and our own: a table of each, who may use them, what they come to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubesched.errors import ConfigError
from kubesched.scheduler.config import Duration
from kubesched.scheduler.legacy import FromConfigMap, FromFile, FromProvider, LegacyScheduler
from kubesched.scheduler.plugins.args import IN_TREE_CATALOGUE
from kubesched.server.options.options import Options, read_options
from kubesched.server.options.own_flags import LEGACY_FLAGS, LEGACY_RELEASES, OWN_FLAGS

DOMAINS = "kubernetes.io/hostname,failure-domain.beta.kubernetes.io/zone,failure-domain.beta.kubernetes.io/region"
V1ALPHA1 = {"apiVersion": "kubescheduler.config.k8s.io/v1alpha1", "kind": "KubeSchedulerConfiguration"}

# name: type in the usage, default, the releases that have it
OLD: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "address": ("ip", "0.0.0.0", LEGACY_RELEASES),
    "algorithm-provider": ("string", "", LEGACY_RELEASES),
    "failure-domains": ("string", DOMAINS, ("1.4", "1.6", "1.13")),
    "hard-pod-affinity-symmetric-weight": ("int32", "1", LEGACY_RELEASES),
    "lock-object-name": ("string", "kube-scheduler", ("1.13", "1.17")),
    "lock-object-namespace": ("string", "kube-system", ("1.13", "1.17")),
    "policy-config-file": ("string", "", LEGACY_RELEASES),
    "policy-configmap": ("string", "", ("1.13", "1.17")),
    "policy-configmap-namespace": ("string", "kube-system", ("1.13", "1.17")),
    "port": ("int", "10251", LEGACY_RELEASES),
    "scheduler-name": ("string", "default-scheduler", LEGACY_RELEASES),
    "use-legacy-policy-config": ("", "false", ("1.13", "1.17")),
}
OWN: dict[str, tuple[str, str]] = {
    "assumed-pod-ttl": ("duration", "0s"),
    "decision-log": ("string", ""),
    "decision-records": ("int", "10000"),
    "inbox-log": ("string", ""),
    "legacy-version": ("string", ""),
    "otlp-endpoint": ("string", ""),
    "plugin": ("stringArray", "[]"),
}


def options(*words: str) -> Options:
    found = read_options(words)
    assert isinstance(found, Options)
    return found


def world(*words: str) -> LegacyScheduler:
    found = options(*words).legacy
    assert found is not None
    return found


def refusal(*words: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read_options(words)
    return str(caught.value)


def test_the_tables_of_old_and_own_flags() -> None:
    assert {f.name: (f.kind.name, f.kind.show(f.default)) for f in LEGACY_FLAGS} == {
        name: (kind, default) for name, (kind, default, _) in OLD.items()
    }
    assert {f.name: (f.kind.name, f.kind.show(f.default)) for f in OWN_FLAGS} == OWN


@pytest.mark.parametrize("name", OLD)
def test_an_old_flag_wants_to_know_the_release(name: str) -> None:
    kind, default, _ = OLD[name]
    assert refusal(f"--{name}={default}" if kind else f"--{name}") == (
        f"--{name} is a flag of old releases: say which one with --legacy-version=1.4|1.6|1.13|1.17"
    )


@pytest.mark.parametrize("release", LEGACY_RELEASES)
@pytest.mark.parametrize("name", OLD)
def test_a_release_takes_its_own_flags_only(name: str, release: str) -> None:
    kind, default, releases = OLD[name]
    words = (f"--legacy-version={release}", f"--{name}={default or 'DefaultProvider'}" if kind else f"--{name}=false")
    if release in releases:
        assert options(*words).legacy is not None
    else:
        assert refusal(*words) == f"--{name}: {release} has no such flag"


@pytest.mark.parametrize("version", ["1.5", "1.36", "latest", "1.3"])
def test_other_releases_are_refused(version: str) -> None:
    assert refusal(f"--legacy-version={version}") == f"--legacy-version: '{version}' is not one of 1.4, 1.6, 1.13, 1.17"


# What a release does when nothing is said: lock, plain port, secure port, longest backoff, percentage of nodes

DEFAULTS = [
    ("1.4", "endpoints", 0, 60, 100),
    ("1.6", "endpoints", 0, 60, 100),
    ("1.13", "endpoints", 10259, 60, 50),
    ("1.17", "endpointsleases", 10259, 10, 0),
]


@pytest.mark.parametrize(("release", "lock", "secure_port", "backoff", "percentage"), DEFAULTS)
def test_what_a_release_does_by_itself(release: str, lock: str, secure_port: int, backoff: int, percentage: int) -> None:
    given = options(f"--legacy-version={release}")
    found = given.legacy
    assert found is not None
    configuration = given.configuration(IN_TREE_CATALOGUE)
    assert configuration.leader_election.resource_lock == lock
    assert (configuration.leader_election.resource_namespace, configuration.leader_election.resource_name) == (
        "kube-system",
        "kube-scheduler",
    )
    assert found.insecure_address == ("0.0.0.0", 10251)
    assert given.serving.secure_port == secure_port
    assert (configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds) == (1, backoff)
    assert found.options.percentage_of_nodes_to_score == percentage
    assert found.config.source == FromProvider("DefaultProvider")
    assert given.assumed_pod_ttl == Duration.of(seconds=30)
    assert given.pod_max_in_unschedulable_pods_duration == Duration.of(seconds=60)
    assert [profile.scheduler_name for profile in configuration.profiles] == ["default-scheduler"]


FLAGS: list[tuple[str, list[str], Any]] = [
    ("config.scheduler_name", ["--scheduler-name=mine"], "mine"),
    ("config.hard_pod_affinity_symmetric_weight", ["--hard-pod-affinity-symmetric-weight=7"], 7),
    ("options.hard_pod_affinity_symmetric_weight", ["--hard-pod-affinity-symmetric-weight=7"], 7),
    ("config.source", ["--algorithm-provider=ClusterAutoscalerProvider"], FromProvider("ClusterAutoscalerProvider")),
    ("config.source", ["--policy-configmap=p"], FromConfigMap("kube-system", "p")),
    ("config.source", ["--policy-configmap=p", "--policy-configmap-namespace=n"], FromConfigMap("n", "p")),
    ("config.source", ["--policy-configmap=p", "--policy-configmap-namespace="], FromConfigMap("kube-system", "p")),
    ("config.source", ["--policy-config-file=f"], FromFile("f")),
    ("config.source", ["--policy-config-file=f", "--algorithm-provider=X"], FromFile("f")),
    ("config.source", ["--policy-config-file=f", "--policy-configmap=p"], FromConfigMap("kube-system", "p")),
    ("config.source", ["--policy-config-file=f", "--policy-configmap=p", "--use-legacy-policy-config"], FromFile("f")),
    ("insecure_address", ["--port=8080", "--address=127.0.0.1"], ("127.0.0.1", 8080)),
    ("insecure_address", ["--port=0"], ("0.0.0.0", 0)),
    ("insecure_address", ["--address=::1"], ("::1", 10251)),
    ("config.leader_election.resource_name", ["--lock-object-name=l"], "l"),
    ("config.leader_election.resource_namespace", ["--lock-object-namespace=n"], "n"),
    ("config.leader_election.resource_lock", ["--leader-elect-resource-lock=configmaps"], "configmaps"),
    ("config.leader_election.leader_elect", ["--leader-elect=false"], False),
    ("config.leader_election.lease_duration", ["--leader-elect-lease-duration=9s"], Duration.of(seconds=9)),
    ("config.client_connection.qps", ["--kube-api-qps=7"], 7.0),
    ("config.enable_profiling", ["--profiling=false"], False),
    ("config.failure_domains", ["--failure-domains=zone"], "zone"),
    ("feature_gates", ["--feature-gates=ResourceLimitsPriorityFunction=true"], {"ResourceLimitsPriorityFunction": True}),
]


@pytest.mark.parametrize(("where", "words", "expected"), FLAGS, ids=[" ".join(case[1]) for case in FLAGS])
def test_each_flag_comes_to_something(where: str, words: list[str], expected: Any) -> None:
    found: Any = world("--legacy-version=1.13", *words)
    for name in where.split("."):
        found = getattr(found, name)
    assert found == expected


WRONG: list[tuple[list[str], str]] = [
    (
        ["--legacy-version=1.17", "--use-legacy-policy-config"],
        "policyConfigFile: Required value: required when --use-legacy-policy-config is true",
    ),
    (
        ["--legacy-version=1.17", "--port=70000"],
        "--port 70000 must be between 0 and 65535, inclusive. 0 for turning off insecure (HTTP) port",
    ),
    (
        ["--legacy-version=1.6", "--leader-elect-resource-lock=leases"],
        "couldn't create resource lock: Invalid lock-type leases",
    ),
    (
        ["--legacy-version=1.13", "--leader-elect-resource-lock=nonsense"],
        "couldn't create resource lock: Invalid lock-type nonsense",
    ),
    (
        ["--legacy-version=1.17", "--hard-pod-affinity-symmetric-weight=101"],
        "hardPodAffinitySymmetricWeight: Invalid value: 101: not in valid range [0-100]",
    ),
    (
        ["--legacy-version=1.6", "--feature-gates=EvenPodsSpread=true"],
        "legacy feature gate EvenPodsSpread does not exist in 1.6",
    ),
    (["--legacy-version=1.17", "--feature-gates=Nonsense=true"], "unrecognized feature gate: Nonsense"),
    (["--feature-gates=EvenPodsSpread=true"], "unrecognized feature gate: EvenPodsSpread"),
    (["--legacy-version=1.6", "--config=x"], "1.6 knows no configuration file; use its flags"),
    (["--legacy-version=1.17", "--config=/nowhere"], "open /nowhere: no such file or directory"),
    (["--assumed-pod-ttl=-1s"], "--assumed-pod-ttl -1s must not be negative. 0 for keeping a booking until it is seen"),
]


@pytest.mark.parametrize(("words", "error"), WRONG, ids=[" ".join(case[0]) for case in WRONG])
def test_what_cannot_be_used_is_refused_in_one_line(words: list[str], error: str) -> None:
    assert refusal(*words) == error


def test_gates_of_then_and_of_today_are_told_apart() -> None:
    given = options("--legacy-version=1.17", "--feature-gates=EvenPodsSpread=true,StorageCapacityScoring=true")
    assert given.legacy is not None and given.legacy.feature_gates == {"EvenPodsSpread": True}
    assert given.gates.is_enabled("StorageCapacityScoring")


def test_up_to_1_6_a_policy_file_that_is_not_there_is_passed_over(tmp_path: Path) -> None:
    missing = f"--policy-config-file={tmp_path / 'policy.json'}"
    assert world("--legacy-version=1.6", missing).config.source == FromProvider("DefaultProvider")
    (tmp_path / "policy.json").write_text("{}")
    assert world("--legacy-version=1.6", missing).config.source == FromFile(str(tmp_path / "policy.json"))


NOTICES = [
    (
        ["--legacy-version=1.13", "--failure-domains=x"],
        ["Flag --failure-domains has been deprecated, Doesn't have any effect. Will be removed in future version."],
    ),
    (
        ["--legacy-version=1.17", "--hard-pod-affinity-symmetric-weight=2"],
        [
            "Flag --hard-pod-affinity-symmetric-weight has been deprecated, This option was moved to the policy configuration "
            "file"
        ],
    ),
    (["--legacy-version=1.6", "--hard-pod-affinity-symmetric-weight=2"], []),
    (["--legacy-version=1.17", "--algorithm-provider=DefaultProvider"], []),
]


@pytest.mark.parametrize(("words", "said"), NOTICES)
def test_a_release_says_what_it_thinks_of_a_flag(words: list[str], said: list[str]) -> None:
    assert list(options(*words).notices) == said


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ([], None),
        (["--assumed-pod-ttl=5s"], 5.0),
        (["--legacy-version=1.17", "--assumed-pod-ttl=5s"], 5.0),
        (["--legacy-version=1.17", "--assumed-pod-ttl=0"], None),
        (["--legacy-version=1.17"], 30.0),
    ],
)
def test_how_long_a_booking_waits(words: list[str], seconds: float | None) -> None:
    ttl = options(*words).assumed_pod_ttl
    assert (None if ttl is None else ttl.seconds) == seconds


def test_own_flags_reach_the_options() -> None:
    given = options("--plugin=a:B", "--plugin", "c,d.py:E", "--inbox-log=log.jsonl")
    assert given.plugins == ("a:B", "c,d.py:E")
    assert given.inbox_log == "log.jsonl"
    assert given.legacy is None


# A file of then


def test_a_file_says_everything_and_flags_beside_it_nothing(tmp_path: Path) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(
        json.dumps(
            {
                **V1ALPHA1,
                "schedulerName": "of-the-file",
                "disablePreemption": True,
                "bindTimeoutSeconds": 5,
                "algorithmSource": {"policy": {"configMap": {"namespace": "n", "name": "p"}}},
                "leaderElection": {"lockObjectName": "l", "leaderElect": True},
                "healthzBindAddress": "127.0.0.1:1",
                "podMaxBackoffSeconds": 20,
                "percentageOfNodesToScore": 30,
            }
        )
    )
    given = options("--legacy-version=1.17", f"--config={file}", "--scheduler-name=of-the-flag", "--port=2")
    found = given.legacy
    assert found is not None
    assert found.config.source == FromConfigMap("n", "p")
    assert (found.options.scheduler_name, found.options.disable_preemption) == ("of-the-file", True)
    assert (found.options.bind_timeout_seconds, found.options.percentage_of_nodes_to_score) == (5, 30)
    assert found.insecure_address == ("127.0.0.1", 1)
    configuration = given.configuration(IN_TREE_CATALOGUE)
    assert configuration.leader_election.resource_name == "l"
    assert configuration.pod_max_backoff_seconds == 20
    assert given.notices == ("Flag --port has no effect beside --config", "Flag --scheduler-name has no effect beside --config")


FILES: list[tuple[dict[str, Any], str]] = [
    (
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"},
        '1.17 reads a KubeSchedulerConfiguration of "kubescheduler.config.k8s.io/v1alpha1", found '
        'KubeSchedulerConfiguration of "kubescheduler.config.k8s.io/v1"',
    ),
    ({**V1ALPHA1, "profiles": []}, 'strict decoding error: unknown field "profiles"'),
    ({**V1ALPHA1, "failureDomains": "x"}, 'strict decoding error: unknown field "failureDomains"'),
    ({**V1ALPHA1, "percentageOfNodesToScore": 101}, "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"),
    ({**V1ALPHA1, "podInitialBackoffSeconds": 0}, "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"),
    (
        {**V1ALPHA1, "podMaxBackoffSeconds": 0},
        "podMaxBackoffSeconds: Invalid value: 0: must be greater than or equal to PodInitialBackoffSeconds",
    ),
    ({**V1ALPHA1, "bindTimeoutSeconds": -1}, "bindTimeoutSeconds: Invalid value: -1: must not be negative"),
    (
        {**V1ALPHA1, "metricsBindAddress": "0.0.0.0:1"},
        'metricsBindAddress: Invalid value: "0.0.0.0:1": must be the same as healthzBindAddress: both are served on one port',
    ),
    (
        {**V1ALPHA1, "algorithmSource": {"policy": {"configMap": {"namespace": "n"}}}},
        "algorithmSource.policy.configMap.name: Required value: no policy can be found without it",
    ),
    ({**V1ALPHA1, "plugins": {"preScore": {}}}, 'strict decoding error: unknown field "plugins.preScore"'),
]


@pytest.mark.parametrize(("document", "error"), FILES, ids=[case[1][:40] for case in FILES])
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, document: dict[str, Any], error: str) -> None:
    file = tmp_path / "old.json"
    file.write_text(json.dumps(document))
    assert error in refusal("--legacy-version=1.17", f"--config={file}")


def test_configz_is_flat_up_to_1_9_and_has_the_shape_of_the_file_later() -> None:
    flat = world("--legacy-version=1.6", "--port=1", "--algorithm-provider=X").document()
    assert (flat["port"], flat["address"], flat["algorithmProvider"]) == (1, "0.0.0.0", "X")
    assert flat["leaderElection"] == {"leaderElect": True, "leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}
    shown = world("--legacy-version=1.17", "--policy-configmap=p").document()
    assert shown["algorithmSource"] == {"policy": {"configMap": {"namespace": "kube-system", "name": "p"}}}
    assert shown["leaderElection"]["resourceLock"] == "endpointsleases"
    assert (shown["healthzBindAddress"], shown["podMaxBackoffSeconds"]) == ("0.0.0.0:10251", 10)
    assert "failureDomains" not in shown
    assert "podMaxBackoffSeconds" not in world("--legacy-version=1.13").document()
