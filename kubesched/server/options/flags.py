"""The flags of kube-scheduler 1.36 and 1.37, as data: name, group, type and default are the reference's, the help is ours.

`FLAGS` is in the order of the usage text's sections. What the values mean together is in `kubesched.server.options.options`.
"""

from __future__ import annotations

from kubesched.scheduler.config import NEWEST, OLDEST_EMULATED, Duration, known_gates, text_of
from kubesched.server.options.flagset import (
    ADDRESS,
    BOOL,
    CERTIFICATES,
    DURATION,
    FLOAT32,
    GATES,
    INT,
    INT32,
    INT32S,
    LEVEL,
    MODULES,
    PAIRS,
    QUANTITY,
    STRING,
    STRINGS,
    VERSION,
    Flag,
    flags_of,
)

MISC = "misc"
SERVING = "secure serving"
AUTHENTICATION = "authentication"
AUTHORIZATION = "authorization"
DEPRECATED = "deprecated"
LEADER_ELECTION = "leader election"
FEATURE_GATE = "feature gate"
METRICS = "metrics"
LOGS = "logs"
GLOBAL = "global"

CIPHER_SUITES = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
)
INSECURE_CIPHER_SUITES = (
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
)
TLS_VERSIONS = ("VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")

ELECTION_FIELDS = {
    "leader-elect": "leader_elect",
    "leader-elect-lease-duration": "lease_duration",
    "leader-elect-renew-deadline": "renew_deadline",
    "leader-elect-retry-period": "retry_period",
    "leader-elect-resource-lock": "resource_lock",
    "leader-elect-resource-name": "resource_name",
    "leader-elect-resource-namespace": "resource_namespace",
}
CONNECTION_FIELDS = {
    "kubeconfig": "kubeconfig",
    "kube-api-content-type": "content_type",
    "kube-api-qps": "qps",
    "kube-api-burst": "burst",
}
"""The flags that stand for a field of `leaderElection` or `clientConnection` in the configuration file."""

_OLD = "DEPRECATED: use the configuration file; ignored if --config is given."
_LED = "Only matters with leader election."
_ALPHA = "[Alpha] Needs the feature gate LoggingAlphaOptions."
_EMULATED = f"{text_of(OLDEST_EMULATED)}..{text_of(NEWEST)}"
_GATES = "\n".join(["Gates to switch, as A=true,B=false or kube:A=true; may be repeated. Options are:", *known_gates()])
_CIPHERS = (
    "Cipher suites to offer, by name; all good ones if omitted.\n"
    f"Preferred values: {', '.join(CIPHER_SUITES)}.\nInsecure values: {', '.join(INSECURE_CIPHER_SUITES)}."
)


def _seconds(amount: float) -> Duration:
    return Duration.of(seconds=amount)


FLAGS: tuple[Flag, ...] = (
    *flags_of(
        MISC,
        ("config", STRING, "", "The configuration file."),
        ("master", STRING, "", "The API server's address; wins over the one in the kubeconfig."),
        ("write-config-to", STRING, "", "Write the effective configuration to this file and exit."),
    ),
    *flags_of(
        SERVING,
        ("bind-address", ADDRESS, "0.0.0.0", "The address to serve HTTPS on; 0.0.0.0 or :: mean all interfaces."),
        ("cert-dir", STRING, "", "Where a self-signed certificate is kept; in memory if empty."),
        ("disable-http2-serving", BOOL, False, "Serve no HTTP/2."),
        ("http2-max-streams-per-connection", INT, 0, "Streams allowed on one HTTP/2 connection; 0 means the default."),
        ("permit-address-sharing", BOOL, False, "Bind the port with SO_REUSEADDR."),
        ("permit-port-sharing", BOOL, False, "Bind the port with SO_REUSEPORT, so that others may bind it too."),
        ("secure-port", INT, 10259, "The port to serve HTTPS on, for those who may; 0: do not serve."),
        ("tls-cert-file", STRING, "", "The certificate to serve with, then its authorities; read again on change."),
        ("tls-cipher-suites", STRINGS, (), _CIPHERS),
        ("tls-curve-preferences", INT32S, (), "Curves to offer, by number; all good ones if omitted."),
        ("tls-min-version", STRING, "", f"The oldest TLS to speak. Possible values: {', '.join(TLS_VERSIONS)}"),
        ("tls-private-key-file", STRING, "", "The key that belongs to --tls-cert-file."),
        (
            "tls-sni-cert-key",
            CERTIFICATES,
            (),
            "A certificate and key for certain names: cert,key or cert,key:name,*.name; may be repeated.",
        ),
    ),
    *flags_of(
        AUTHENTICATION,
        (
            "authentication-kubeconfig",
            STRING,
            "",
            "A kubeconfig that may create tokenreviews. Without it tokens are anonymous and no client CA is looked up.",
        ),
        ("authentication-skip-lookup", BOOL, False, "Do not look up missing authentication settings in the cluster."),
        ("authentication-token-webhook-cache-ttl", DURATION, _seconds(10), "How long an answer about a token is remembered."),
        (
            "authentication-tolerate-lookup-failure",
            BOOL,
            True,
            "Go on when that look-up fails; every request may then be anonymous.",
        ),
        ("client-ca-file", STRING, "", "Authorities whose client certificates say who a caller is."),
        (
            "requestheader-allowed-names",
            STRINGS,
            (),
            "Common names that may speak for others through headers; any with a good certificate if empty.",
        ),
        ("requestheader-client-ca-file", STRING, "", "Authorities of proxies that speak for others through headers."),
        (
            "requestheader-extra-headers-prefix",
            STRINGS,
            ("x-remote-extra-",),
            "Prefixes of headers with further facts about a user.",
        ),
        ("requestheader-group-headers", STRINGS, ("x-remote-group",), "Headers with a user's groups."),
        ("requestheader-uid-headers", STRINGS, (), "Headers with a user's UID."),
        ("requestheader-username-headers", STRINGS, ("x-remote-user",), "Headers with a user's name."),
    ),
    *flags_of(
        AUTHORIZATION,
        (
            "authorization-always-allow-paths",
            STRINGS,
            ("/healthz", "/readyz", "/livez"),
            "Paths that anybody may read; a trailing * matches the rest.",
        ),
        (
            "authorization-kubeconfig",
            STRING,
            "",
            "A kubeconfig that may create subjectaccessreviews. Without it all other paths are forbidden.",
        ),
        ("authorization-webhook-cache-authorized-ttl", DURATION, _seconds(10), "How long a yes is remembered."),
        ("authorization-webhook-cache-unauthorized-ttl", DURATION, _seconds(10), "How long a no is remembered."),
    ),
    *flags_of(
        DEPRECATED,
        ("contention-profiling", BOOL, True, f"Profile waiting as well, if profiling is on. {_OLD}"),
        ("kube-api-burst", INT32, 100, f"Requests to the API server that may come at once. {_OLD}"),
        (
            "kube-api-content-type",
            STRING,
            "application/vnd.kubernetes.protobuf",
            f"The content type of requests to the API server. {_OLD}",
        ),
        ("kube-api-qps", FLOAT32, 50.0, f"Requests to the API server each second. {_OLD}"),
        ("kubeconfig", STRING, "", f"The kubeconfig to use. {_OLD}"),
        (
            "pod-max-in-unschedulable-pods-duration",
            DURATION,
            Duration.of(minutes=5),
            "DEPRECATED: how long a pod may wait as unschedulable before it is tried again without a reason.",
        ),
        ("profiling", BOOL, True, f"Serve profiles under /debug/pprof/. {_OLD}"),
    ),
    *flags_of(
        LEADER_ELECTION,
        ("leader-elect", BOOL, True, "Wait for leadership before scheduling; needed where several schedulers run."),
        ("leader-elect-lease-duration", DURATION, _seconds(15), f"How long others wait for a silent leader. {_LED}"),
        ("leader-elect-renew-deadline", DURATION, _seconds(10), f"How long a leader tries to renew. {_LED}"),
        ("leader-elect-resource-lock", STRING, "leases", "The kind of object that is the lock: 'leases'."),
        ("leader-elect-resource-name", STRING, "kube-scheduler", "The lock's name."),
        ("leader-elect-resource-namespace", STRING, "kube-system", "The lock's namespace."),
        ("leader-elect-retry-period", DURATION, _seconds(2), f"How long to wait between two tries. {_LED}"),
    ),
    *flags_of(
        FEATURE_GATE,
        (
            "emulated-version",
            STRINGS,
            (),
            "Behave as this release, as 1.36 or kube=1.36; without it, as the release of the API server. "
            f"Options are: kube={_EMULATED}(default:{text_of(NEWEST)})",
        ),
        ("feature-gates", GATES, (), _GATES),
        (
            "min-compatibility-version",
            STRINGS,
            (),
            "The oldest release to get on with, up to the emulated one. "
            f"Options are: kube={_EMULATED}(default:{text_of((NEWEST[0], NEWEST[1] - 1))})",
        ),
    ),
    *flags_of(
        METRICS,
        (
            "allow-metric-labels",
            PAIRS,
            {},
            "Values that a label may take, as metric,label='v1,v2'; others are counted as `unexpected`.",
        ),
        (
            "allow-metric-labels-manifest",
            STRING,
            "",
            "A file with the same as a map; cannot be given together with --allow-metric-labels.",
        ),
        ("disabled-metrics", STRINGS, (), "Metrics that are not kept, by their full names."),
        ("show-hidden-metrics-for-version", STRING, "", "Show metrics that were hidden since this release: '1.35'."),
    ),
    *flags_of(
        LOGS,
        ("log-flush-frequency", DURATION, _seconds(5), "The longest time between two flushes of the log."),
        ("log-json-info-buffer-size", QUANTITY, "0", f"Bytes of info lines to hold back in JSON format. {_ALPHA}"),
        ("log-json-split-stream", BOOL, False, f"In JSON format, errors to stderr and the rest to stdout. {_ALPHA}"),
        ("log-text-info-buffer-size", QUANTITY, "0", f"Bytes of info lines to hold back in text format. {_ALPHA}"),
        ("log-text-split-stream", BOOL, False, f"In text format, errors to stderr and the rest to stdout. {_ALPHA}"),
        ("logging-format", STRING, "text", 'The log\'s format: "json" or "text".'),
    ),
    Flag("v", LOGS, LEVEL, 0, "How much to log.", short="v"),
    *flags_of(LOGS, ("vmodule", MODULES, (), "How much single files log, as pattern=N; text format only.")),
    Flag("help", GLOBAL, BOOL, False, "Show this text.", short="h"),
    *flags_of(
        GLOBAL,
        (
            "version",
            VERSION,
            "false",
            "Print the version and exit; --version=raw prints all of it; --version=vX.Y.Z... sets what is reported.",
        ),
    ),
)
