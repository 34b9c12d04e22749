"""Flags that kube-scheduler does not have today: our own, and those of its old releases.

`LEGACY_FLAGS` need `--legacy-version`. `SINCE` and `UNTIL` say which releases had a flag, `NOTICES` what a release printed if
it was used. legacy_flags.py says what the values mean together.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.server.options.flagset import read_flags

LEGACY_RELEASES = ("1.4", "1.6", "1.13", "1.17")
"""The releases that --legacy-version selects. 1.3, little different from 1.4, can be asked for in Python only."""

FAILURE_DOMAINS = "kubernetes.io/hostname,failure-domain.beta.kubernetes.io/zone,failure-domain.beta.kubernetes.io/region"

OWN_FLAGS = read_flags(
    """
[kubesched]
assumed-pod-ttl duration =0s: Give up a booking whose binding was written but not seen for so long; 0: never, as
  kube-scheduler does. With --legacy-version the default is 30s.
decision-log string: Write every decision and what it was made by to this file, a line of JSON each; at 64 MiB it is renamed
  to FILE.1, and five files are kept.
decision-records int =10000: Keep so many decisions in memory, for `kubesched decisions`; 0: none.
inbox-log string: Write all that reaches the engine to this file, for `kubesched replay`; compressed if it ends in .gz.
legacy-version string: Run the scheduler of an old release, with its own flags: {releases}.
otlp-endpoint string: Send every attempt as an OpenTelemetry span, its plugins as children, to this OTLP receiver
  (http://HOST:4318/v1/traces). Needs kubesched[otel].
plugin words: A plugin of your own, as module:Class or path/to/file.py:Class, or all of a file; may be repeated. With
  --legacy-version the file registers predicates and priorities.
""",
    releases=", ".join(LEGACY_RELEASES),
)

LEGACY_FLAGS = read_flags("""
[legacy]
address ip =0.0.0.0: DEPRECATED: the address to serve --port on; see --bind-address.
algorithm-provider string: DEPRECATED: the set of predicates and priorities to run: ClusterAutoscalerProvider |
  DefaultProvider.
failure-domains string
  =kubernetes.io/hostname,failure-domain.beta.kubernetes.io/zone,failure-domain.beta.kubernetes.io/region: DEPRECATED: label
  keys that an empty topologyKey stood for; up to 1.14.
hard-pod-affinity-symmetric-weight int32 =1: DEPRECATED: what a required affinity of a placed pod counts in the score of the
  nodes it points to.
lock-object-name string =kube-scheduler: DEPRECATED: the name of the leader's lock; since 1.7.
lock-object-namespace string =kube-system: DEPRECATED: the namespace of the leader's lock; since 1.7.
policy-config-file string: DEPRECATED: a policy file; used if there is no policy ConfigMap, or with
  --use-legacy-policy-config.
policy-configmap string: DEPRECATED: a ConfigMap that holds a policy under the key policy.cfg; since 1.7.
policy-configmap-namespace string =kube-system: DEPRECATED: the namespace of that ConfigMap; since 1.7.
port int =10251: DEPRECATED: the port for plain HTTP, open to everybody; 0: do not serve. See --secure-port.
scheduler-name string =default-scheduler: DEPRECATED: the spec.schedulerName of the pods to place.
use-legacy-policy-config bool =false: DEPRECATED: use the policy file even if there is a policy ConfigMap; since 1.7.
""")

SINCE: Mapping[str, int] = dict.fromkeys(
    ("policy-configmap", "policy-configmap-namespace", "use-legacy-policy-config", "lock-object-name", "lock-object-namespace"),
    7,
)
UNTIL: Mapping[str, int] = {"failure-domains": 14}
"""The minor releases that brought a flag and that had it last; all others were in all releases of then."""

NOTICES: Mapping[str, tuple[int, str]] = {
    "failure-domains": (4, "Doesn't have any effect. Will be removed in future version."),
    "hard-pod-affinity-symmetric-weight": (10, "This option was moved to the policy configuration file"),
}
"""What a release says when a flag is used, and from which minor release on. --failure-domains did something up to 1.5,
for pods with an empty topologyKey; no API server of today takes such a pod."""
