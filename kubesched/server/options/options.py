"""Options: a parsed command line, checked, and applied over the configuration file in kube-scheduler's order.

With `--config` the file is the base, and only the given leader election flags are applied over it. Without a file the defaults
are the base, and the deprecated flags are applied too. Serving, authentication, metrics, logs and gates have no fields in the
file, so their flags always count.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath

import msgspec

from kubesched.errors import ConfigError
from kubesched.kube.values import aggregate, go_quote, quantity
from kubesched.scheduler.config import (
    NEWEST,
    OLDEST_EMULATED,
    OLDEST_RECORDED,
    RELEASES,
    Catalogue,
    ClientConnection,
    Configuration,
    Duration,
    FieldError,
    Gates,
    Path,
    Version,
    defaults,
    forbidden,
    invalid,
    load,
    plain,
    read_yaml,
    text_of,
    unreadable,
)
from kubesched.scheduler.legacy import LegacyScheduler
from kubesched.scheduler.legacy.scheduler import ASSUMED_TTL_SECONDS, MAX_WAITING_SECONDS
from kubesched.server.options import flags as table
from kubesched.server.options.flagset import CertificatePair, Parsed, UsageError, parse
from kubesched.server.options.legacy_flags import notices, read_legacy, refuse_old_flags, split_gates
from kubesched.server.options.usage import ALL_FLAGS, PROGRAM, help_text

_METRIC = "[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = "[a-zA-Z_][a-zA-Z0-9_]*"
_CURVES = frozenset({23, 24, 25, 29, 4587, 4588, 4589})


@dataclass(frozen=True, slots=True)
class Serving:
    """The flags of the secure port. A field is named as its flag."""

    bind_address: str  # 0.0.0.0 and :: mean all interfaces
    secure_port: int  # 0: do not serve
    cert_dir: str  # where a certificate is kept that we make; empty: in memory
    tls_cert_file: str
    tls_private_key_file: str
    tls_cipher_suites: tuple[str, ...]
    tls_curve_preferences: tuple[int, ...]
    tls_min_version: str  # empty: TLS 1.2
    tls_sni_cert_key: tuple[CertificatePair, ...]
    http2_max_streams_per_connection: int  # refused if set: only HTTP/1.1 is served
    disable_http2_serving: bool
    permit_port_sharing: bool
    permit_address_sharing: bool


@dataclass(frozen=True, slots=True)
class Authentication:
    """The flags about who the caller is."""

    kubeconfig: str
    skip_lookup: bool  # do not read the cluster's authentication ConfigMap
    token_webhook_cache_ttl: Duration
    tolerate_lookup_failure: bool  # start without it
    client_ca_file: str  # authorities of callers
    requestheader_client_ca_file: str  # authorities of proxies
    requestheader_username_headers: tuple[str, ...]
    requestheader_uid_headers: tuple[str, ...]
    requestheader_group_headers: tuple[str, ...]
    requestheader_extra_headers_prefix: tuple[str, ...]
    requestheader_allowed_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Authorization:
    """The flags about what a caller may do."""

    kubeconfig: str
    always_allow_paths: tuple[str, ...]  # open to all
    webhook_cache_authorized_ttl: Duration
    webhook_cache_unauthorized_ttl: Duration


@dataclass(frozen=True, slots=True)
class Metrics:
    """The flags about metrics."""

    show_hidden_for_version: str  # also show the metrics that this release has hidden
    disabled: tuple[str, ...]  # metrics that are not kept, by their full names
    allowed_label_values: Mapping[tuple[str, str], frozenset[str]]  # (metric, label): values


@dataclass(frozen=True, slots=True)
class Logs:
    """The flags about the log."""

    format: str
    flush_frequency: Duration
    verbosity: int  # of --v
    vmodule: tuple[tuple[str, int], ...]  # patterns of file names, each with a verbosity
    split_stream: bool  # of the chosen format
    info_buffer_bytes: int  # info lines that are held back


@dataclass(frozen=True, slots=True)
class Options:
    """A checked command line."""

    config: str
    write_config_to: str  # write the effective configuration to this file and exit
    master: str  # the API server's address; wins over the kubeconfig's
    serving: Serving
    authentication: Authentication
    authorization: Authorization
    metrics: Metrics
    logs: Logs
    gates: Gates
    min_compatibility: Version  # the oldest release to be compatible with
    pod_max_in_unschedulable_pods_duration: Duration
    reported_version: str  # for --version and the metric kubernetes_build_info
    parsed: Parsed  # the raw values, for the log at -v 1 and for /flagz
    plugins: tuple[str, ...] = ()  # module:Class, or a file
    inbox_log: str = ""  # a file for everything that reaches the engine
    decision_log: str = ""
    otlp_endpoint: str = ""  # a receiver of OpenTelemetry spans
    decision_records: int = 0  # how many decisions are kept in memory
    assumed_pod_ttl: Duration | None = None  # None: a booking never expires
    legacy: LegacyScheduler | None = None
    notices: tuple[str, ...] = ()  # about the old flags that were given

    def configuration(self, registry: Catalogue) -> Configuration:
        """Return the effective configuration."""
        election = self.parsed.fields(table.ELECTION_FIELDS)
        if self.legacy is not None:
            return self.legacy.over(defaults(gates=self.gates, registry=registry))
        if self.config:
            return load(FilePath(self.config), gates=self.gates, registry=registry, overrides=election)
        base = defaults(gates=self.gates, registry=registry)
        given = self.parsed.given
        # These are not validated: the reference leaves bad times to the leader elector, which names them.
        return replace(
            base,
            leader_election=msgspec.structs.replace(base.leader_election, **election),
            client_connection=self._connection(base.client_connection),
            enable_profiling=self.parsed["profiling"] if "profiling" in given else base.enable_profiling,
            enable_contention_profiling=(
                self.parsed["contention-profiling"] if "contention-profiling" in given else base.enable_contention_profiling
            ),
        )

    def _connection(self, base: ClientConnection) -> ClientConnection:
        """Return the client connection with the deprecated flags applied."""
        found = msgspec.structs.replace(base, **self.parsed.fields(table.CONNECTION_FIELDS))
        if found.qps > 0 and found.burst < 0:
            detail = "burst is required to be greater than 0 when RateLimiter is not set and QPS is set to greater than 0"
            raise ConfigError("", detail)
        return found


def overruled(options: Options, configuration: Configuration) -> list[str]:
    """Return a message for each deprecated flag that is ignored because there is a file, as kube-scheduler logs them."""
    flags = [*table.CONNECTION_FIELDS, "profiling", "contention-profiling"]
    if not options.config or options.legacy is not None:
        return []
    notes = [f"--{flag} is ignored: with --config the file counts" for flag in flags if flag in options.parsed.given]
    if "kubeconfig" in options.parsed.given:
        counts = configuration.client_connection.kubeconfig
        notes[0] += f", whose clientConnection.kubeconfig is {counts or 'empty: the cluster that this runs in'}"
    return notes


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a command line that asks for a text, such as --help or --version: print it and exit with 0."""

    text: str


def read_options(
    words: Sequence[str],
    *,
    columns: int = 0,
    command: str = PROGRAM,
    on_logs: Callable[[Logs], None] = lambda _: None,
    release: Version = NEWEST,
) -> Options | Answer:
    """Return the options of a command line, in the order in which kube-scheduler checks them.

    UsageError: print `usage_text` before it. ConfigError: print the error alone. `on_logs` is called as soon as the log
    settings are known; errors after that belong in the log. `release` is emulated if no flag names one.
    """
    parsed = parse(ALL_FLAGS, words)
    if parsed["help"]:
        return Answer(help_text(columns=columns, command=command))
    if any(parsed.words):
        listed = " ".join(go_quote(word) for word in parsed.words)
        raise ConfigError("", f"{go_quote(command)} does not take any arguments, got [{listed}]")
    emulated, oldest = _versions(parsed, release)
    # First, because the gates of a release that cannot be emulated would be a riddle, not an answer.
    if wrong_versions := _version_errors(emulated, oldest):
        raise ConfigError("", aggregate(wrong_versions))
    if parsed["legacy-version"]:
        given_gates = split_gates(parsed)[1]
        gates = Gates.of(given_gates, emulated=emulated, min_compatibility=oldest)
    else:
        refuse_old_flags(parsed)
        gates = Gates.parse(parsed["feature-gates"], emulated=emulated, min_compatibility=oldest)
    version = _reported_version(parsed["version"], emulated)
    if parsed["version"] in ("true", "raw"):
        return Answer(f"Kubernetes {version}\n" if parsed["version"] == "true" else _raw_version(version, emulated))
    logs = _logs(parsed, gates)
    on_logs(logs)
    errors: list[object] = [*_serving_errors(parsed), *_header_errors(parsed)]
    metrics, wrong = _metrics(parsed, emulated)
    errors += wrong
    if errors:
        raise ConfigError("", aggregate(errors))
    legacy = read_legacy(parsed) if parsed["legacy-version"] else None
    return Options(
        config=parsed["config"],
        write_config_to=parsed["write-config-to"],
        master=parsed["master"],
        serving=_serving(parsed, legacy),
        authentication=_authentication(parsed),
        authorization=_authorization(parsed),
        metrics=metrics,
        logs=logs,
        gates=gates,
        min_compatibility=oldest,
        pod_max_in_unschedulable_pods_duration=_longest_wait(parsed, legacy),
        reported_version=version,
        parsed=parsed,
        plugins=parsed["plugin"],
        inbox_log=parsed["inbox-log"],
        decision_log=parsed["decision-log"],
        otlp_endpoint=_otlp_endpoint(parsed),
        decision_records=_decision_records(parsed),
        assumed_pod_ttl=_assumed_ttl(parsed, legacy),
        legacy=legacy,
        notices=tuple(notices(parsed, legacy.release)) if legacy is not None else (),
    )


def _decision_records(parsed: Parsed) -> int:
    """Return how many decisions to keep; refuse flags that need some if none are kept."""
    given: int = parsed["decision-records"]
    if given < 0:
        raise UsageError(f"--decision-records is {given}: it must be 0 or more")
    for flag in ("decision-log", "otlp-endpoint"):
        if not given and parsed[flag]:
            raise UsageError(f"--{flag} tells what is recorded, and --decision-records=0 records nothing")
    return given


def _otlp_endpoint(parsed: Parsed) -> str:
    """Return the OTLP receiver, or an empty text."""
    given: str = parsed["otlp-endpoint"]
    if given and not given.startswith(("http://", "https://")):
        raise UsageError(f"--otlp-endpoint is {given!r}: it must be a URL, as http://127.0.0.1:4318/v1/traces")
    return given


# --- flags of old releases and our own --------------------------------------------------------------------------------


def _longest_wait(parsed: Parsed, legacy: LegacyScheduler | None) -> Duration:
    """Return how long a pod may stay unschedulable without an event. Old releases have a constant."""
    name = "pod-max-in-unschedulable-pods-duration"
    if legacy is not None and name not in parsed.given:
        return Duration.of(seconds=MAX_WAITING_SECONDS)
    found: Duration = parsed[name]
    return found


def _assumed_ttl(parsed: Parsed, legacy: LegacyScheduler | None) -> Duration | None:
    """Return when an assumed pod expires that was not seen as bound; None for never."""
    ttl: Duration = parsed["assumed-pod-ttl"]
    if ttl < 0:
        raise ConfigError("", f"--assumed-pod-ttl {ttl} must not be negative. 0 for keeping a booking until it is seen")
    if legacy is not None and "assumed-pod-ttl" not in parsed.given:
        return Duration.of(seconds=ASSUMED_TTL_SECONDS)
    return ttl or None


# --- versions ---------------------------------------------------------------------------------------------------------


def _versions(parsed: Parsed, release: Version) -> tuple[Version, Version]:
    """Return the emulated release, and the oldest one to be compatible with: by default the release before."""
    emulated = _version_flag(parsed["emulated-version"]) or release
    oldest = _version_flag(parsed["min-compatibility-version"])
    return emulated, oldest or max(OLDEST_EMULATED, (emulated[0], emulated[1] - 1))


def _version_flag(entries: tuple[str, ...]) -> Version | None:
    """Return the release of `1.36` or `kube=1.36`."""
    found: Version | None = None
    for entry in entries:
        component, equals, text = (part.strip() for part in entry.partition("="))
        if not equals:
            component, text = "kube", entry
        version = _parse_version(text)
        shown = ".".join(map(str, version))
        if len(version) > 2 and version[2]:
            raise ConfigError("", f"patch version not allowed, got: {component}={shown}")
        if component != "kube":
            raise ConfigError("", f"component not registered: {component}")
        if found is not None:
            raise ConfigError("", f"duplicate version flag, kube={found[0]}.{found[1]} and kube={shown}")
        found = (version[0], version[1])
    return found


def _parse_version(text: str) -> tuple[int, ...]:
    """Return the numbers of a version, with the errors of Kubernetes' version parser."""
    match = re.match(r"\s*v?([0-9]+(?:\.[0-9]+)*)", text)
    if not match:
        raise ConfigError("", f"could not parse {go_quote(text)} as version")
    parts = match[1].split(".")
    if len(parts) < 2:
        raise ConfigError("", f"illegal version string {go_quote(text)}")
    if parts[0].startswith("0") and parts[0] != "0":
        detail = f"illegal zero-prefixed version component {go_quote(parts[0])} in {go_quote(text)}"
        raise ConfigError("", detail)
    return tuple(int(part) for part in parts)


def _version_errors(emulated: Version, oldest: Version) -> list[str]:
    """Return what is wrong with the two versions."""
    errors = []
    floor, newest, now = map(text_of, (OLDEST_EMULATED, NEWEST, emulated))
    if not OLDEST_EMULATED <= emulated <= NEWEST:
        errors.append(f"emulation version {now} is not between [{floor}, {newest}.0]")
    if not OLDEST_EMULATED <= oldest <= emulated:
        errors.append(f"minCompatibilityVersion version {text_of(oldest)} is not between [{floor}, {now}]")
    return errors


def _reported_version(text: str, emulated: Version) -> str:
    """Return the version to report. A given one must be of the emulated release."""
    release = RELEASES[max(emulated, OLDEST_RECORDED)]
    if not text.startswith("v"):
        return release
    match = re.fullmatch(r"v([0-9]+\.[0-9]+\.[0-9]+)(?:[-+][0-9A-Za-z.+-]+)?", text)
    if not text[1:2].isdigit():
        raise UsageError(_bad_version(text, f"could not parse {go_quote(text)} as version"))
    if not match:
        raise UsageError(_bad_version(text, f"illegal version string {go_quote(text)}"))
    if f"v{match[1]}" != release.partition("-")[0]:
        cause = f"version {go_quote(text)} must match major/minor/patch of default version {go_quote(release)}"
        raise UsageError(_bad_version(text, cause))
    return text


def _bad_version(text: str, cause: str) -> str:
    return f'invalid argument {go_quote(text)} for "--version" flag: {cause}'


def _raw_version(version: str, emulated: Version) -> str:
    """Return what --version=raw prints. The fields of a Go build are empty."""
    major, minor = max(emulated, OLDEST_RECORDED)
    fields = {
        "Major": major,
        "Minor": minor,
        "EmulationMajor": "",
        "EmulationMinor": "",
        "MinCompatibilityMajor": "",
        "MinCompatibilityMinor": "",
        "GitVersion": version,
        "GitCommit": "",
        "GitTreeState": "",
        "BuildDate": "",
        "GoVersion": "",
        "Compiler": f"{platform.python_implementation()} {platform.python_version()}",
        "Platform": f"{platform.system()}/{platform.machine()}".lower(),
    }  # what a build of Go knows of itself stays empty
    return f"version.Info{{{', '.join(f'{name}:{go_quote(str(value))}' for name, value in fields.items())}}}\n"


# --- groups -----------------------------------------------------------------------------------------------------------


def _serving_errors(parsed: Parsed) -> list[str]:
    """Return what is wrong with the port and the TLS flags."""
    port, errors = parsed["secure-port"], []
    if port < 0:
        errors.append(f"--secure-port {port} must be between 0 and 65535, inclusive. 0 for turning off secure port")
    if port > 65535:  # the reference says something else here, by the precedence of its operators
        errors.append(f"--secure-port {port} must be between 1 and 65535, inclusive. It cannot be turned off with 0")
    for suite in parsed["tls-cipher-suites"]:
        if suite not in table.CIPHER_SUITES + table.INSECURE_CIPHER_SUITES:
            errors.append(f"Cipher suite {suite} not supported or doesn't exist")
    seen = set()
    for curve in parsed["tls-curve-preferences"]:
        if not 0 < curve <= 65535:
            errors.append(f"curve preference {curve} is out of range (must be 1-65535)")
        elif curve in seen:
            errors.append(f"duplicate curve preference {curve}")
        elif curve not in _CURVES:
            errors.append(f"curve preference {curve} is not supported by the current Go version")
        seen.add(curve)
    version = parsed["tls-min-version"]
    if version and version not in table.TLS_VERSIONS:
        errors.append(f"unknown tls version {go_quote(version)}")
    return errors


def _header_errors(parsed: Parsed) -> list[str]:
    """Return what is wrong with the request header flags."""
    errors = []
    names = ("username-headers", "group-headers", "extra-headers-prefix", "allowed-names", "uid-headers")
    for name in (f"requestheader-{each}" for each in names):
        if any(not value.strip() for value in parsed[name]):
            errors.append(f'empty value in "{name}"')
    uid = parsed["requestheader-uid-headers"]
    if uid and not any(value.lower() == "x-remote-uid" for value in uid):
        detail = "is set without specifying the standard X-Remote-Uid header - API aggregation will not work"
        errors.append(f"--requestheader-uid-headers {detail}")
    return errors


def _metrics(parsed: Parsed, emulated: Version) -> tuple[Metrics, list[FieldError]]:
    """Return the metrics options and what is wrong with them."""
    path, errors = Path("metrics"), []
    shown, previous = parsed["show-hidden-metrics-for-version"], text_of((emulated[0], emulated[1] - 1))
    if shown and shown != previous:
        detail = f"must be omitted or have the value '{previous}'; only the previous minor version is allowed"
        errors.append(invalid(path.child("showHiddenMetricsForVersion"), shown, detail))
    disabled = parsed["disabled-metrics"]
    wrong = next((name for name in disabled if not re.fullmatch(_METRIC, name)), None)
    if wrong is not None:
        rule = f'"^{_METRIC}$"'
        detail = f"must be fully qualified metric names matching {rule}, got {go_quote(wrong)}"
        errors.append(invalid(path.child("disabledMetrics"), disabled, detail))
    allowed = parsed["allow-metric-labels"]
    errors += _allow_list_errors(allowed, path.child("allowListMapping"))
    file = parsed["allow-metric-labels-manifest"]
    if file:
        where = path.child("allowListMappingManifest")
        if allowed:
            detail = "cannot specify both allowListMapping and allowListMappingManifest"
            errors.append(invalid(path, {"allowListMapping": allowed, "allowListMappingManifest": file}, detail))
        try:
            listed = _read_manifest(file)
        except ConfigError as error:
            errors.append(invalid(where, file, str(error)))
            listed = {}
        nested = _allow_list_errors(listed, where)
        if nested:
            shown_errors = " ".join(map(str, nested))
            errors.append(invalid(where, file, f"invalid allow list mapping in manifest: [{shown_errors}]"))
        allowed = {**listed, **allowed}
    keys = ((key.partition(","), text) for key, text in allowed.items())
    values = {(metric, label): frozenset(text.split(",")) for (metric, comma, label), text in keys if comma}
    return Metrics(shown, disabled, values), errors


def _allow_list_errors(allowed: Mapping[str, str], path: Path) -> list[FieldError]:
    """Return what is wrong with the keys of an allow list."""
    if all(re.fullmatch(f"{_METRIC},{_LABEL}", key) for key in allowed):
        return []
    rule = f'metricName matches "{_METRIC}" and labelName matches "{_LABEL}"'
    return [invalid(path, dict(allowed), f"must have keys with format `metricName,labelName` where {rule}")]


def _read_manifest(file: str) -> dict[str, str]:
    """Return the allow list in a file."""
    try:
        text = FilePath(file).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError("", f"failed to read allow list manifest: {unreadable(file, error)}") from error
    try:
        found = plain(read_yaml(text)[0])
    except ConfigError as error:
        raise ConfigError("", f"failed to parse allow list manifest: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ConfigError("", "failed to parse allow list manifest: a map of strings is wanted")
    return found


def _logs(parsed: Parsed, gates: Gates) -> Logs:
    """Return the log options. Their errors are raised alone, before anything else is checked."""
    errors: list[FieldError] = []
    chosen, flush = parsed["logging-format"], parsed["log-flush-frequency"]
    if flush <= 0:
        errors.append(invalid(Path("flushFrequency"), flush, "Must be greater than zero"))
    if chosen not in ("text", "json"):
        errors.append(invalid(Path("format"), chosen, "Unsupported log format"))
    elif chosen == "json" and not gates.is_enabled("LoggingBetaOptions"):
        errors.append(forbidden(Path("format"), "Log format json is disabled, see LoggingBetaOptions feature"))
    if parsed["vmodule"] and chosen != "text":
        errors.append(forbidden(Path("vmodule"), "Only supported for text log format"))
    alpha = gates.is_enabled("LoggingAlphaOptions")
    for name in ("text", "json"):
        path = Path("options").child(name)
        if parsed[f"log-{name}-split-stream"] and not alpha:
            errors.append(forbidden(path.child("splitStream"), "Feature LoggingAlphaOptions is disabled"))
        if quantity.parse(parsed[f"log-{name}-info-buffer-size"]) and not alpha:
            errors.append(forbidden(path.child("infoBufferSize"), "Feature LoggingAlphaOptions is disabled"))
    if errors:
        raise ConfigError("", aggregate(errors))
    return Logs(
        format=chosen,
        flush_frequency=flush,
        verbosity=parsed["v"],
        vmodule=parsed["vmodule"],
        split_stream=parsed[f"log-{chosen}-split-stream"],
        info_buffer_bytes=quantity.value(quantity.parse(parsed[f"log-{chosen}-info-buffer-size"])),
    )


def _serving(parsed: Parsed, legacy: LegacyScheduler | None) -> Serving:
    """Return the serving options. Releases without a secure port get one only if the flag is given."""
    values = {name: parsed[name.replace("_", "-")] for name in Serving.__dataclass_fields__}
    if legacy is not None and not legacy.release.serves_securely and "secure-port" not in parsed.given:
        values["secure_port"] = 0
    return Serving(**values)


def _authentication(parsed: Parsed) -> Authentication:
    """Return the authentication options."""
    prefixed = {"kubeconfig", "skip_lookup", "token_webhook_cache_ttl", "tolerate_lookup_failure"}
    values = {}
    for name in Authentication.__dataclass_fields__:
        flag = name.replace("_", "-")
        values[name] = parsed[f"authentication-{flag}" if name in prefixed else flag]
    return Authentication(**values)


def _authorization(parsed: Parsed) -> Authorization:
    """Return the authorization options."""
    names = Authorization.__dataclass_fields__
    return Authorization(**{name: parsed[f"authorization-{name.replace('_', '-')}"] for name in names})
