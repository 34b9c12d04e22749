"""The server stands for one release of Kubernetes: it says so, and serves the versions that this release has."""

from typing import Any

import pytest

from kubesched.embedded import ManualClock, ObjectStore
from kubesched.embedded.http.discovery import version
from kubesched.embedded.schema.resources import RELEASES, Catalogue

SERVED = {  # what differs between the releases, as their discovery documents have it
    36: {("scheduling.k8s.io", "v1alpha2", "podgroups"), ("scheduling.k8s.io", "v1alpha2", "workloads")},
    37: {
        ("resource.k8s.io", "v1", "devicetaintrules"),
        ("scheduling.k8s.io", "v1alpha3", "compositepodgroups"),
        *(("scheduling.k8s.io", one, plural) for one in ("v1beta1", "v1alpha3") for plural in ("podgroups", "workloads")),
    },
}


def served(release: int) -> set[tuple[str, str, str]]:
    return {(one.group, one.version, one.plural) for one in Catalogue(release)}


def test_each_release_serves_its_own_versions() -> None:
    assert set(SERVED) == set(RELEASES)
    assert (served(36) - served(37), served(37) - served(36)) == (SERVED[36], SERVED[37])
    for release in RELEASES:
        for one in SERVED[36] | SERVED[37]:
            assert (Catalogue(release).at(*one) is not None) == (one in SERVED[release])


@pytest.mark.parametrize(
    ("release", "versions"), [(36, ["v1", "v1alpha2"]), (37, ["v1", "v1beta1", "v1alpha3"])], ids=["1.36", "1.37"]
)
def test_discovery_and_version_say_the_release(release: int, versions: list[str]) -> None:
    assert Catalogue(release).groups()["scheduling.k8s.io"] == versions
    told = version(release)
    assert (told["minor"], told["gitVersion"]) == (str(release), f"{RELEASES[release]}+kubesched")


def test_a_rule_is_one_object_in_all_its_versions() -> None:
    rule: dict[str, Any] = {"metadata": {"name": "r"}, "spec": {"taint": {"key": "k", "effect": "NoSchedule"}}}
    for written in ("v1", "v1beta2"):
        store = ObjectStore(ManualClock(), seed=1)
        store.create(f"devicetaintrules.{written}.resource.k8s.io", rule)
        for read in ("v1", "v1beta2"):
            found = store.get(f"devicetaintrules.{read}.resource.k8s.io", "r")
            assert (found["apiVersion"], found["spec"]) == (f"resource.k8s.io/{read}", rule["spec"])
