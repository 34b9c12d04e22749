"""Every family that kube-scheduler has, as a scraper sees it: name, type, labels, stability and help, in either release.

`reference_families.tsv` was written down from the sources of 1.36.4 and 1.37.0-rc.1 and from the list of metrics that
Kubernetes documents for kube-scheduler; where the two disagree, what the program registers counts. What the programs of both
releases show when they are scraped with a pod placed and one pending is the same, word for word.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from kubesched.kube.api.codec import convert
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.cluster.pods import Templates
from kubesched.server.web.health import Results
from kubesched.server.web.pod_resources import lines
from kubesched.telemetry.exposing import exposition, register
from kubesched.telemetry.families import Kind, Version
from kubesched.telemetry.metrics import FAMILIES, Metrics, MetricsSettings
from kubesched.telemetry.samples import Labels

RELEASES: tuple[Version, ...] = ((1, 36), (1, 37))
OURS = ("kubesched_", "python_", "process_")

Row = tuple[str, frozenset[str], str, tuple[str, ...]]
"""Type, labels, the help as it is exposed, and the bounds of buckets."""


def recorded(release: Version, endpoint: str) -> dict[str, Row]:
    """Return what the reference shows at an endpoint, by name."""
    found = {}
    for line in Path(__file__).with_name("reference_families.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        name, releases, kind, labels, stability, deprecated, where, bounds, text = line.split("\t")
        if where != endpoint or releases not in ("both", "{}.{}".format(*release)):
            continue
        since = "" if deprecated == "-" else f"(Deprecated since {deprecated}) "
        labelled = frozenset() if labels == "-" else frozenset(labels.split(","))
        buckets = () if bounds == "-" else tuple(bounds.split(","))
        found[name] = (kind, labelled, f"[{stability}] {since}{text}", buckets)
    return found


def shown(text: str) -> dict[str, Row]:
    """Return what a scraper reads, by the name that its lines carry."""
    found = {}
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = frozenset(label for sample in family.samples for label in sample.labels) - {"le"}
        bounds = dict.fromkeys(f"{float(sample.labels['le']):g}" for sample in family.samples if "le" in sample.labels)
        found[name] = (family.type, labels, family.documentation, tuple(bound for bound in bounds if bound != "inf"))
    return found


def filled(release: Version) -> Metrics:
    """Return metrics of a release with all gates on, and a series in every family."""
    metrics = Metrics(MetricsSettings(release=release))
    metrics.watch(pending_pods=lambda: {"active": 1})
    metrics.queue_incoming("active", "PodAdd")
    for family in metrics.shown:
        labels: Labels = ("x",) * len(family.labels)
        if family.kind is Kind.HISTOGRAM:
            metrics.histograms[family.name].observe(labels, 1.0)
        else:
            (metrics.counters if family.kind is Kind.COUNTER else metrics.gauges)[family.name][labels] += 1.0
    return metrics


def differences(ours: Mapping[str, Row], theirs: Mapping[str, Row]) -> dict[str, tuple[Row | None, Row | None]]:
    """Return what is not the same on both sides."""
    names = sorted(set(ours) | set(theirs))
    return {name: (ours.get(name), theirs.get(name)) for name in names if ours.get(name) != theirs.get(name)}


@pytest.mark.parametrize("release", RELEASES, ids=["1.36", "1.37"])
def test_metrics_are_the_references_word_for_word(release: Version) -> None:
    text = exposition(register(filled(release), CollectorRegistry())).decode()
    ours = {name: row for name, row in shown(text).items() if not name.startswith(OURS)}
    assert differences(ours, recorded(release, "/metrics")) == {}


@pytest.mark.parametrize("release", RELEASES, ids=["1.36", "1.37"])
def test_resources_are_the_references_word_for_word(release: Version) -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}
    pod = convert({"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"containers": [container]}}, Pod)
    assert differences(shown("".join(lines([Templates().view(pod)]))), recorded(release, "/metrics/resources")) == {}


def test_health_checks_are_the_references_word_for_word() -> None:
    results = Results()
    registry = CollectorRegistry()
    registry.register(results)
    results.note("ping", "livez", True)
    assert differences(shown(exposition(registry).decode()), recorded((1, 37), "/metrics/slis")) == {}


def test_a_family_has_one_row_a_release() -> None:
    for release in RELEASES:
        names = [family.name for family in Metrics(MetricsSettings(release=release, is_legacy=True)).shown]
        assert len(names) == len(set(names))
    assert {family.name for family in FAMILIES} >= set(recorded((1, 36), "/metrics"))
