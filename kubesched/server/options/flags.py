"""The flags of kube-scheduler 1.36 and 1.37, as data: name, group, type and default are the reference's, the help is ours.

`TABLE` is in the order of the usage text's sections, in the notation of `flagset.read_flags`. options.py says what
the values mean together.
"""

from __future__ import annotations

from kubesched.scheduler.config import NEWEST, OLDEST_EMULATED, known_gates, text_of
from kubesched.server.options.flagset import read_flags

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

TABLE = """
[misc]
config string: The configuration file.
master string: The API server's address; wins over the one in the kubeconfig.
write-config-to string: Write the effective configuration to this file and exit.
[secure serving]
bind-address ip =0.0.0.0: The address to serve HTTPS on; 0.0.0.0 or :: mean all interfaces.
cert-dir string: Where a self-signed certificate is kept; in memory if empty.
disable-http2-serving bool =false: Serve no HTTP/2.
http2-max-streams-per-connection int =0: Streams allowed on one HTTP/2 connection; 0 means the default.
permit-address-sharing bool =false: Bind the port with SO_REUSEADDR.
permit-port-sharing bool =false: Bind the port with SO_REUSEPORT, so that others may bind it too.
secure-port int =10259: The port to serve HTTPS on, for those who may; 0: do not serve.
tls-cert-file string: The certificate to serve with, then its authorities; read again on change.
tls-cipher-suites strings: {ciphers}
tls-curve-preferences int32s: Curves to offer, by number; all good ones if omitted.
tls-min-version string: The oldest TLS to speak. Possible values: {tls_versions}
tls-private-key-file string: The key that belongs to --tls-cert-file.
tls-sni-cert-key certificates: A certificate and key for certain names: cert,key or cert,key:name,*.name; may be repeated.
[authentication]
authentication-kubeconfig string: A kubeconfig that may create tokenreviews. Without it tokens are anonymous and no client CA
  is looked up.
authentication-skip-lookup bool =false: Do not look up missing authentication settings in the cluster.
authentication-token-webhook-cache-ttl duration =10s: How long an answer about a token is remembered.
authentication-tolerate-lookup-failure bool =true: Go on when that look-up fails; every request may then be anonymous.
client-ca-file string: Authorities whose client certificates say who a caller is.
requestheader-allowed-names strings: Common names that may speak for others through headers; any with a good certificate if
  empty.
requestheader-client-ca-file string: Authorities of proxies that speak for others through headers.
requestheader-extra-headers-prefix strings =x-remote-extra-: Prefixes of headers with further facts about a user.
requestheader-group-headers strings =x-remote-group: Headers with a user's groups.
requestheader-uid-headers strings: Headers with a user's UID.
requestheader-username-headers strings =x-remote-user: Headers with a user's name.
[authorization]
authorization-always-allow-paths strings =/healthz,/readyz,/livez: Paths that anybody may read; a trailing * matches the rest.
authorization-kubeconfig string: A kubeconfig that may create subjectaccessreviews. Without it all other paths are forbidden.
authorization-webhook-cache-authorized-ttl duration =10s: How long a yes is remembered.
authorization-webhook-cache-unauthorized-ttl duration =10s: How long a no is remembered.
[deprecated]
contention-profiling bool =true: Profile waiting as well, if profiling is on. {old}
kube-api-burst int32 =100: Requests to the API server that may come at once. {old}
kube-api-content-type string =application/vnd.kubernetes.protobuf: The content type of requests to the API server. {old}
kube-api-qps float32 =50: Requests to the API server each second. {old}
kubeconfig string: The kubeconfig to use. {old}
pod-max-in-unschedulable-pods-duration duration =5m0s: DEPRECATED: how long a pod may wait as unschedulable before it is tried
  again without a reason.
profiling bool =true: Serve profiles under /debug/pprof/. {old}
[leader election]
leader-elect bool =true: Wait for leadership before scheduling; needed where several schedulers run.
leader-elect-lease-duration duration =15s: How long others wait for a silent leader. {led}
leader-elect-renew-deadline duration =10s: How long a leader tries to renew. {led}
leader-elect-resource-lock string =leases: The kind of object that is the lock: 'leases'.
leader-elect-resource-name string =kube-scheduler: The lock's name.
leader-elect-resource-namespace string =kube-system: The lock's namespace.
leader-elect-retry-period duration =2s: How long to wait between two tries. {led}
[feature gate]
emulated-version strings: Behave as this release, as 1.36 or kube=1.36; without it, as the release of the API server. Options
  are: kube={emulated}({newest})
feature-gates gates: {gates}
min-compatibility-version strings: The oldest release to get on with, up to the emulated one. Options are:
  kube={emulated}({oldest_default})
[metrics]
allow-metric-labels pairs: Values that a label may take, as metric,label='v1,v2'; others are counted as `unexpected`.
allow-metric-labels-manifest string: A file with the same as a map; cannot be given together with --allow-metric-labels.
disabled-metrics strings: Metrics that are not kept, by their full names.
show-hidden-metrics-for-version string: Show metrics that were hidden since this release: '1.35'.
[logs]
log-flush-frequency duration =5s: The longest time between two flushes of the log.
log-json-info-buffer-size quantity =0: Bytes of info lines to hold back in JSON format. {alpha}
log-json-split-stream bool =false: In JSON format, errors to stderr and the rest to stdout. {alpha}
log-text-info-buffer-size quantity =0: Bytes of info lines to hold back in text format. {alpha}
log-text-split-stream bool =false: In text format, errors to stderr and the rest to stdout. {alpha}
logging-format string =text: The log's format: "json" or "text".
v(v) level =0: How much to log.
vmodule modules: How much single files log, as pattern=N; text format only.
[global]
help(h) bool =false: Show this text.
version version =false: Print the version and exit; --version=raw prints all of it; --version=vX.Y.Z... sets what is reported.
"""
FLAGS = read_flags(
    TABLE,
    old="DEPRECATED: use the configuration file; ignored if --config is given.",
    led="Only matters with leader election.",
    alpha="[Alpha] Needs the feature gate LoggingAlphaOptions.",
    gates="\n".join(["Gates to switch, as A=true,B=false or kube:A=true; may be repeated. Options are:", *known_gates()]),
    ciphers="Cipher suites to offer, by name; all good ones if omitted.\n"
    f"Preferred values: {', '.join(CIPHER_SUITES)}.\nInsecure values: {', '.join(INSECURE_CIPHER_SUITES)}.",
    tls_versions=", ".join(TLS_VERSIONS),
    emulated=f"{text_of(OLDEST_EMULATED)}..{text_of(NEWEST)}",
    newest=f"default:{text_of(NEWEST)}",
    oldest_default=f"default:{text_of((NEWEST[0], NEWEST[1] - 1))}",
)
