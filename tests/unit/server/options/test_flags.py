"""The command line: every flag with its default, pflag's manners, and the precedence over the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubesched.errors import ConfigError
from kubesched.scheduler.config import Duration
from kubesched.scheduler.plugins.args import IN_TREE_CATALOGUE
from kubesched.server.options.flags import FLAGS
from kubesched.server.options.flagset import CertificatePair, UsageError, parse, usage
from kubesched.server.options.options import Answer, Options, overruled, read_options
from kubesched.server.options.usage import help_text, usage_text

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}

# name: group, type in the usage, default in the usage
REFERENCE: dict[str, tuple[str, str, str]] = {
    "config": ("misc", "string", ""),
    "write-config-to": ("misc", "string", ""),
    "master": ("misc", "string", ""),
    "bind-address": ("secure serving", "ip", "0.0.0.0"),
    "secure-port": ("secure serving", "int", "10259"),
    "cert-dir": ("secure serving", "string", ""),
    "tls-cert-file": ("secure serving", "string", ""),
    "tls-private-key-file": ("secure serving", "string", ""),
    "tls-cipher-suites": ("secure serving", "strings", "[]"),
    "tls-curve-preferences": ("secure serving", "int32Slice", "[]"),
    "tls-min-version": ("secure serving", "string", ""),
    "tls-sni-cert-key": ("secure serving", "namedCertKey", "[]"),
    "http2-max-streams-per-connection": ("secure serving", "int", "0"),
    "disable-http2-serving": ("secure serving", "", "false"),
    "permit-port-sharing": ("secure serving", "", "false"),
    "permit-address-sharing": ("secure serving", "", "false"),
    "authentication-kubeconfig": ("authentication", "string", ""),
    "authentication-skip-lookup": ("authentication", "", "false"),
    "authentication-token-webhook-cache-ttl": ("authentication", "duration", "10s"),
    "authentication-tolerate-lookup-failure": ("authentication", "", "true"),
    "client-ca-file": ("authentication", "string", ""),
    "requestheader-client-ca-file": ("authentication", "string", ""),
    "requestheader-username-headers": ("authentication", "strings", "[x-remote-user]"),
    "requestheader-uid-headers": ("authentication", "strings", "[]"),
    "requestheader-group-headers": ("authentication", "strings", "[x-remote-group]"),
    "requestheader-extra-headers-prefix": ("authentication", "strings", "[x-remote-extra-]"),
    "requestheader-allowed-names": ("authentication", "strings", "[]"),
    "authorization-kubeconfig": ("authorization", "string", ""),
    "authorization-always-allow-paths": ("authorization", "strings", "[/healthz,/readyz,/livez]"),
    "authorization-webhook-cache-authorized-ttl": ("authorization", "duration", "10s"),
    "authorization-webhook-cache-unauthorized-ttl": ("authorization", "duration", "10s"),
    "kubeconfig": ("deprecated", "string", ""),
    "profiling": ("deprecated", "", "true"),
    "contention-profiling": ("deprecated", "", "true"),
    "kube-api-content-type": ("deprecated", "string", "application/vnd.kubernetes.protobuf"),
    "kube-api-qps": ("deprecated", "float32", "50"),
    "kube-api-burst": ("deprecated", "int32", "100"),
    "pod-max-in-unschedulable-pods-duration": ("deprecated", "duration", "5m0s"),
    "leader-elect": ("leader election", "", "true"),
    "leader-elect-lease-duration": ("leader election", "duration", "15s"),
    "leader-elect-renew-deadline": ("leader election", "duration", "10s"),
    "leader-elect-retry-period": ("leader election", "duration", "2s"),
    "leader-elect-resource-lock": ("leader election", "string", "leases"),
    "leader-elect-resource-name": ("leader election", "string", "kube-scheduler"),
    "leader-elect-resource-namespace": ("leader election", "string", "kube-system"),
    "feature-gates": ("feature gate", "colonSeparatedMultimapStringString", ""),
    "emulated-version": ("feature gate", "strings", "[]"),
    "min-compatibility-version": ("feature gate", "strings", "[]"),
    "show-hidden-metrics-for-version": ("metrics", "string", ""),
    "disabled-metrics": ("metrics", "strings", "[]"),
    "allow-metric-labels": ("metrics", "stringToString", "[]"),
    "allow-metric-labels-manifest": ("metrics", "string", ""),
    "logging-format": ("logs", "string", "text"),
    "log-flush-frequency": ("logs", "duration", "5s"),
    "v": ("logs", "Level", "0"),
    "vmodule": ("logs", "pattern=N,...", ""),
    "log-text-split-stream": ("logs", "", "false"),
    "log-text-info-buffer-size": ("logs", "quantity", "0"),
    "log-json-split-stream": ("logs", "", "false"),
    "log-json-info-buffer-size": ("logs", "quantity", "0"),
    "version": ("global", "version", "false"),
    "help": ("global", "", "false"),
}


def test_the_table_is_the_references() -> None:
    found = {flag.name: (flag.group, flag.kind.name, flag.kind.show(flag.default)) for flag in FLAGS}
    assert found == REFERENCE


def test_help_tells_what_it_is_before_the_usage_and_ends_in_an_example() -> None:
    text = help_text(command="kubesched run")
    assert text.index("Runs the scheduler") < text.index("Usage:\n  kubesched run [flags]")
    assert text.splitlines()[-1] == "Example:  kubesched run --config scheduler.yaml --v=2"


@pytest.mark.parametrize("flag", FLAGS, ids=[flag.name for flag in FLAGS])
def test_each_flag_says_what_it_does_in_its_own_section(flag: Any) -> None:
    text = usage_text()
    section = text.split(f"\n{flag.group[:1].upper()}{flag.group[1:]} flags:\n")[1].split(" flags:\n")[0]
    assert f"--{flag.name}" in section
    assert flag.help.split("\n")[0] in section
    if flag.group == "deprecated":
        assert "DEPRECATED" in flag.help


VALUES: list[tuple[list[str], str, Any]] = [
    (["--config=x"], "config", "x"),
    (["--config", "x"], "config", "x"),
    (["--config="], "config", ""),
    (["--config", "a", "--config", "b"], "config", "b"),
    (["--leader-elect"], "leader-elect", True),
    (["--leader-elect=false"], "leader-elect", False),
    (["--leader_elect=F"], "leader-elect", False),
    (["--secure-port=0x10"], "secure-port", 16),
    (["--secure-port", "-1"], "secure-port", -1),
    (["--kube-api-qps=0.5"], "kube-api-qps", 0.5),
    (["--kube-api-burst=7"], "kube-api-burst", 7),
    (["--leader-elect-lease-duration=1m30s"], "leader-elect-lease-duration", Duration.of(seconds=90)),
    (["--bind-address=::1"], "bind-address", "::1"),
    (["--bind-address="], "bind-address", ""),
    (["--disabled-metrics=a,b", "--disabled-metrics=c"], "disabled-metrics", ("a", "b", "c")),
    (["--requestheader-username-headers=x-me"], "requestheader-username-headers", ("x-me",)),
    (["--authorization-always-allow-paths="], "authorization-always-allow-paths", ()),
    (['--disabled-metrics="a,b",c'], "disabled-metrics", ("a,b", "c")),
    (["--tls-curve-preferences=23,29"], "tls-curve-preferences", (23, 29)),
    (["--allow-metric-labels=m,l=v1,v2"], "allow-metric-labels", {"m,l": "v1,v2"}),
    (
        ['--allow-metric-labels="m,a=1","m,b=2"', "--allow-metric-labels=n,c=3"],
        "allow-metric-labels",
        {"m,a": "1", "m,b": "2", "n,c": "3"},
    ),
    (
        ["--tls-sni-cert-key=a.crt,a.key:x,*.y", "--tls-sni-cert-key=b.crt,b.key"],
        "tls-sni-cert-key",
        (CertificatePair("a.crt", "a.key", ("x", "*.y")), CertificatePair("b.crt", "b.key")),
    ),
    (["-v5"], "v", 5),
    (["-v=5"], "v", 5),
    (["-v", "5"], "v", 5),
    (["--v=5"], "v", 5),
    (["--vmodule=a=1,b*=2"], "vmodule", (("a", 1), ("b*", 2))),
    (["--log-text-info-buffer-size=2Ki"], "log-text-info-buffer-size", "2Ki"),
    (["--version"], "version", "true"),
    (["--version=raw"], "version", "raw"),
    (["-h"], "help", True),
]


@pytest.mark.parametrize(("words", "name", "expected"), VALUES, ids=[" ".join(case[0]) for case in VALUES])
def test_words_become_values(words: list[str], name: str, expected: Any) -> None:
    parsed = parse(FLAGS, words)
    assert parsed[name] == expected
    assert parsed.given == {name}


REFUSED: list[tuple[list[str], str]] = [
    (["--nonsense"], "unknown flag: --nonsense"),
    (["--nonsense=1"], "unknown flag: --nonsense"),
    (["-x"], "unknown shorthand flag: 'x' in -x"),
    (["--=1"], "bad flag syntax: --=1"),
    (["---x"], "bad flag syntax: ---x"),
    (["--config"], "flag needs an argument: --config"),
    (["-v"], "flag needs an argument: 'v' in -v"),
    (
        ["--secure-port=x"],
        'invalid argument "x" for "--secure-port" flag: strconv.ParseInt: parsing "x": invalid syntax',
    ),
    (
        ["--kube-api-burst=3000000000"],
        'invalid argument "3000000000" for "--kube-api-burst" flag: strconv.ParseInt: parsing "3000000000": value out of range',
    ),
    (
        ["--leader-elect=maybe"],
        'invalid argument "maybe" for "--leader-elect" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
    ),
    (
        ["--kube-api-qps=fast"],
        'invalid argument "fast" for "--kube-api-qps" flag: strconv.ParseFloat: parsing "fast": invalid syntax',
    ),
    (
        ["--log-flush-frequency=5"],
        'invalid argument "5" for "--log-flush-frequency" flag: time: missing unit in duration "5"',
    ),
    (["--bind-address=here"], 'invalid argument "here" for "--bind-address" flag: failed to parse IP: "here"'),
    (["-v=x"], 'invalid argument "x" for "-v, --v" flag: strconv.ParseUint: parsing "x": invalid syntax'),
    (["--vmodule=a"], 'invalid argument "a" for "--vmodule" flag: "a" does not have the pattern=N format'),
    (
        ["--allow-metric-labels=x"],
        'invalid argument "x" for "--allow-metric-labels" flag: x must be formatted as key=value',
    ),
    (
        ["--tls-sni-cert-key=a"],
        'invalid argument "a" for "--tls-sni-cert-key" flag: expected comma separated certificate and key file paths',
    ),
    (
        ["--tls-sni-cert-key=a,b:"],
        'invalid argument "a,b:" for "--tls-sni-cert-key" flag: empty names list is not allowed',
    ),
    (
        ["--log-json-info-buffer-size=lots"],
        'invalid argument "lots" for "--log-json-info-buffer-size" flag: quantities must match the regular expression '
        "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
    (
        ["--kube-api-qps=1e50"],
        'invalid argument "1e50" for "--kube-api-qps" flag: strconv.ParseFloat: parsing "1e50": value out of range',
    ),
    (["--version=vx"], 'invalid argument "vx" for "--version" flag: could not parse "vx" as version'),
    (
        ["--version=v1.2.3"],
        'invalid argument "v1.2.3" for "--version" flag: version "v1.2.3" must match major/minor/patch of default '
        'version "v1.37.0-rc.1"',
    ),
]


@pytest.mark.parametrize(("words", "error"), REFUSED, ids=[" ".join(case[0]) for case in REFUSED])
def test_nonsense_is_refused_in_pflags_words(words: list[str], error: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_options(words)
    assert str(caught.value) == error


INVALID: list[tuple[list[str], str]] = [
    (["x"], '"kube-scheduler" does not take any arguments, got ["x"]'),
    (["--leader-elect", "false"], '"kube-scheduler" does not take any arguments, got ["false"]'),
    (["--", "--config"], '"kube-scheduler" does not take any arguments, got ["--config"]'),
    (
        ["--secure-port=70000"],
        "--secure-port 70000 must be between 1 and 65535, inclusive. It cannot be turned off with 0",
    ),
    (
        ["--secure-port=-1"],
        "--secure-port -1 must be between 0 and 65535, inclusive. 0 for turning off secure port",
    ),
    (["--feature-gates=Nope=true"], "unrecognized feature gate: Nope"),
    (["--feature-gates", "GenericWorkload"], "missing bool value for GenericWorkload"),
    (["--emulated-version=1.38"], "emulation version 1.38 is not between [1.33, 1.37.0]"),
    (
        ["--emulated-version=1.30"],
        "[emulation version 1.30 is not between [1.33, 1.37.0], "
        "minCompatibilityVersion version 1.33 is not between [1.33, 1.30]]",
    ),
    (["--emulated-version=kube=1.35.1"], "patch version not allowed, got: kube=1.35.1"),
    (["--emulated-version=wardle=1.35"], "component not registered: wardle"),
    (["--emulated-version=new"], 'could not parse "new" as version'),
    (
        ["--emulated-version=1.34", "--min-compatibility-version=1.35"],
        "minCompatibilityVersion version 1.35 is not between [1.33, 1.34]",
    ),
    (
        ["--show-hidden-metrics-for-version=1.20"],
        "metrics.showHiddenMetricsForVersion: Invalid value: \"1.20\": must be omitted or have the value '1.36'; "
        "only the previous minor version is allowed",
    ),
    (
        ["--disabled-metrics=a b"],
        'metrics.disabledMetrics: Invalid value: ["a b"]: must be fully qualified metric names matching '
        '"^[a-zA-Z_:][a-zA-Z0-9_:]*$", got "a b"',
    ),
    (
        ["--allow-metric-labels=m=v"],
        'metrics.allowListMapping: Invalid value: {"m":"v"}: must have keys with format `metricName,labelName` where '
        'metricName matches "[a-zA-Z_:][a-zA-Z0-9_:]*" and labelName matches "[a-zA-Z_][a-zA-Z0-9_]*"',
    ),
    (["--logging-format=xml"], 'format: Invalid value: "xml": Unsupported log format'),
    (
        ["--logging-format=json", "--feature-gates=LoggingBetaOptions=false"],
        "format: Forbidden: Log format json is disabled, see LoggingBetaOptions feature",
    ),
    (["--logging-format=json", "--vmodule=a=1"], "vmodule: Forbidden: Only supported for text log format"),
    (["--log-json-split-stream"], "options.json.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled"),
    (
        ["--log-text-info-buffer-size=1Ki"],
        "options.text.infoBufferSize: Forbidden: Feature LoggingAlphaOptions is disabled",
    ),
    (["--log-flush-frequency=0s"], 'flushFrequency: Invalid value: "0s": Must be greater than zero'),
    (["--tls-cipher-suites=ROT13"], "Cipher suite ROT13 not supported or doesn't exist"),
    (["--tls-min-version=TLS1.2"], 'unknown tls version "TLS1.2"'),
    (["--tls-curve-preferences=29,29"], "duplicate curve preference 29"),
    (["--tls-curve-preferences=7"], "curve preference 7 is not supported by the current Go version"),
    (["--tls-curve-preferences=0"], "curve preference 0 is out of range (must be 1-65535)"),
    (["--requestheader-group-headers= "], 'empty value in "requestheader-group-headers"'),
    (
        ["--requestheader-uid-headers=x-me"],
        "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - "
        "API aggregation will not work",
    ),
]


@pytest.mark.parametrize(("words", "error"), INVALID, ids=[" ".join(case[0]) for case in INVALID])
def test_a_value_that_cannot_be_used_is_refused(words: list[str], error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_options(words)
    assert str(caught.value) == error


def options(*words: str) -> Options:
    found = read_options(words)
    assert isinstance(found, Options)
    return found


def test_every_flag_reaches_the_options() -> None:
    """A value put in by a flag comes out of the options or of the configuration: none is read and forgotten."""
    given = options(
        "--authentication-kubeconfig=ak",
        "--authorization-kubeconfig=zk",
        "--requestheader-uid-headers=X-Remote-Uid",
        "--tls-min-version=VersionTLS13",
        "--permit-port-sharing",
        "--allow-metric-labels=m,l=v1,v2",
        "--feature-gates=LoggingAlphaOptions=true",
        "--log-text-split-stream",
        "--log-text-info-buffer-size=2Ki",
        "--pod-max-in-unschedulable-pods-duration=1m",
        "--master=https://here",
        "--version=v1.37.0+ours",
    )
    assert given.authentication.kubeconfig == "ak"
    assert given.authorization.kubeconfig == "zk"
    assert given.authentication.requestheader_uid_headers == ("X-Remote-Uid",)
    assert given.serving.tls_min_version == "VersionTLS13"
    assert given.serving.permit_port_sharing
    assert given.metrics.allowed_label_values == {("m", "l"): frozenset({"v1", "v2"})}
    assert given.logs.split_stream
    assert given.logs.info_buffer_bytes == 2048
    assert given.pod_max_in_unschedulable_pods_duration == Duration.of(minutes=1)
    assert given.master == "https://here"
    assert given.reported_version == "v1.37.0+ours"
    assert given.gates.is_enabled("LoggingAlphaOptions")


def test_an_emulated_version_changes_the_defaults_of_gates() -> None:
    assert options().gates.is_enabled("NodeDeclaredFeatures")
    assert options().min_compatibility == (1, 36)
    older = read_options(["--emulated-version=1.35", "--feature-gates=kube:OpportunisticBatching=false"])
    assert isinstance(older, Options)
    assert not older.gates.is_enabled("NodeDeclaredFeatures")
    assert older.min_compatibility == (1, 34)


def test_a_manifest_of_label_values_is_read(tmp_path: Path) -> None:
    file = tmp_path / "labels.yaml"
    file.write_text('"m,l": "v1,v2"\n')
    given = options(f"--allow-metric-labels-manifest={file}")
    assert given.metrics.allowed_label_values == {("m", "l"): frozenset({"v1", "v2"})}
    with pytest.raises(ConfigError, match="failed to read allow list manifest: open /nowhere: no such file"):
        read_options(["--allow-metric-labels-manifest=/nowhere"])


def test_questions_are_answered_instead_of_starting() -> None:
    assert read_options(["--version"]) == Answer("Kubernetes v1.37.0-rc.1\n")
    assert read_options(["--version", "--emulated-version=1.36"]) == Answer("Kubernetes v1.36.4\n")
    raw = read_options(["--version=raw"])
    assert isinstance(raw, Answer)
    assert 'GitVersion:"v1.37.0-rc.1"' in raw.text
    assert read_options(["--help", "--feature-gates=X=true"]) == Answer(help_text())


# --- precedence -------------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "config.yaml"
    election = {"leaderElect": False, "resourceName": "of-the-file", "leaseDuration": "40s"}
    connection = {"kubeconfig": "of-the-file", "qps": 7, "burst": 8}
    document = {**HEAD, "leaderElection": election, "clientConnection": connection, "enableProfiling": False}
    path.write_text(json.dumps(document))
    return str(path)


def test_only_leader_election_flags_win_over_a_file(file: str) -> None:
    given = options(
        f"--config={file}",
        "--leader-elect",
        "--leader-elect-resource-name=of-the-flag",
        "--kubeconfig=of-the-flag",
        "--kube-api-qps=1",
        "--kube-api-burst=1",
        "--kube-api-content-type=x/y",
        "--profiling",
        "--contention-profiling",
    ).configuration(IN_TREE_CATALOGUE)
    assert given.leader_election.leader_elect is True
    assert given.leader_election.resource_name == "of-the-flag"
    assert given.leader_election.lease_duration == Duration.of(seconds=40)
    assert given.client_connection.kubeconfig == "of-the-file"
    assert (given.client_connection.qps, given.client_connection.burst) == (7, 8)
    assert given.client_connection.content_type == "application/vnd.kubernetes.protobuf"
    assert (given.enable_profiling, given.enable_contention_profiling) == (False, False)


def test_a_flag_at_its_default_still_wins_when_it_is_given(file: str) -> None:
    kept = options(f"--config={file}").configuration(IN_TREE_CATALOGUE)
    assert kept.leader_election.resource_name == "of-the-file"
    given = options(f"--config={file}", "--leader-elect-resource-name=kube-scheduler")
    assert given.configuration(IN_TREE_CATALOGUE).leader_election.resource_name == "kube-scheduler"


ELECTION: list[tuple[str, str, Any]] = [
    ("--leader-elect=false", "leader_elect", False),
    ("--leader-elect-lease-duration=1m", "lease_duration", Duration.of(minutes=1)),
    ("--leader-elect-renew-deadline=9s", "renew_deadline", Duration.of(seconds=9)),
    ("--leader-elect-retry-period=1s", "retry_period", Duration.of(seconds=1)),
    ("--leader-elect-resource-lock=endpoints", "resource_lock", "endpoints"),
    ("--leader-elect-resource-name=n", "resource_name", "n"),
    ("--leader-elect-resource-namespace=ns", "resource_namespace", "ns"),
]


@pytest.mark.parametrize(("word", "field", "expected"), ELECTION, ids=[case[0] for case in ELECTION])
def test_without_a_file_flags_change_the_defaults_and_are_not_validated(word: str, field: str, expected: Any) -> None:
    assert getattr(options(word).configuration(IN_TREE_CATALOGUE).leader_election, field) == expected


def test_without_a_file_the_deprecated_flags_count() -> None:
    given = options(
        "--kubeconfig=k", "--kube-api-qps=1.5", "--kube-api-burst=2", "--kube-api-content-type=x/y", "--profiling=false"
    ).configuration(IN_TREE_CATALOGUE)
    assert given.client_connection.kubeconfig == "k"
    assert (given.client_connection.qps, given.client_connection.burst) == (1.5, 2)
    assert given.client_connection.content_type == "x/y"
    assert (given.enable_profiling, given.enable_contention_profiling) == (False, True)


def test_a_bad_flag_over_a_file_is_found_by_validation(file: str) -> None:
    given = options(f"--config={file}", "--leader-elect", "--leader-elect-lease-duration=1s")
    with pytest.raises(ConfigError, match="must be greater than `RenewDeadline`"):
        given.configuration(IN_TREE_CATALOGUE)


# --- usage ------------------------------------------------------------------------------------------------------------


def test_the_usage_has_the_references_sections_in_order() -> None:
    sections = [line.removesuffix(" flags:") for line in usage_text().splitlines() if line.endswith(" flags:")]
    assert sections == [
        "Misc",
        "Secure serving",
        "Authentication",
        "Authorization",
        "Deprecated",
        "Leader election",
        "Feature gate",
        "Metrics",
        "Logs",
        "Global",
        "Kubesched",
        "Legacy",
    ]


def test_the_usage_shows_types_and_defaults() -> None:
    text = usage_text()
    assert text.startswith("Usage:\n  kube-scheduler [flags]\n\nMisc flags:\n\n      --config string")
    assert '(default "leases")' in text
    assert "(default [/healthz,/readyz,/livez])" in text
    assert "  -v, --v Level" in text
    assert "      --version version[=true]" in text
    assert "kube:GenericWorkload=true|false (BETA - default=false)" in text


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_a_narrow_terminal_gets_wrapped_lines(columns: int) -> None:
    for line in usage(FLAGS, "kubesched run", columns).splitlines():
        left = line.split("   ")[-1]
        assert len(line) <= columns or " " not in left.strip()


OVERRULED = [
    ("the file names another", "clientConnection: {kubeconfig: other}", "whose clientConnection.kubeconfig is other"),
    ("the file names none", "", "whose clientConnection.kubeconfig is empty: the cluster that this runs in"),
]


@pytest.mark.parametrize(("extra", "counts"), [case[1:] for case in OVERRULED], ids=[case[0] for case in OVERRULED])
def test_a_kubeconfig_beside_a_file_says_which_one_counts(tmp_path: Path, extra: str, counts: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{extra}\n")
    found = read_options([f"--config={file}", "--kubeconfig=mine", "--kube-api-qps=3"])
    assert isinstance(found, Options)
    assert overruled(found, found.configuration(IN_TREE_CATALOGUE)) == [
        f"--kubeconfig is ignored: with --config the file counts, {counts}",
        "--kube-api-qps is ignored: with --config the file counts",
    ]
    alone = read_options(["--kubeconfig=mine"])
    assert isinstance(alone, Options) and overruled(alone, alone.configuration(IN_TREE_CATALOGUE)) == []


def test_the_story_of_the_help_is_wrapped_to_the_terminal() -> None:
    story = help_text(columns=80).split("\nUsage:")[0].strip().splitlines()
    assert len(story) > 3 and max(map(len, story)) <= 80
