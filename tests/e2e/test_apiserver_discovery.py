"""What the embedded server serves for a release, kube-apiserver of that release serves just so.

Skipped where KUBEBUILDER_ASSETS names no real API server of a release that the embedded one stands for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from control_planes import RealPlane, real_assets

from kubesched.embedded.http import discovery
from kubesched.embedded.schema.resources import METRICS_GROUP, RELEASES, Catalogue

pytestmark = pytest.mark.real
Object = dict[str, Any]
EVERYTHING = ("--runtime-config=api/all=true", "--feature-gates=AllAlpha=true,AllBeta=true")
NOT_HERE = {
    ("storage.k8s.io", "v1", "csinodes/status"),  # behind an alpha gate of 1.37
    ("", "v1", "serviceaccounts/token"),
    *(("", "v1", f"pods/{way}") for way in ("attach", "exec", "log", "portforward", "proxy")),  # need a real kubelet
    *(("", "v1", f"{kind}/proxy") for kind in ("nodes", "services")),
}


def listed(document: Object) -> dict[str, tuple[Any, ...]]:
    """Return the resources and subresources of a document at /apis/GROUP/VERSION, each with all that is said of it."""
    return {
        one["name"]: (
            one["kind"],
            one["namespaced"],
            one["singularName"],
            sorted(set(one["verbs"])),
            sorted(one.get("shortNames") or ()),
            one.get("categories") or [],
            one.get("group", ""),
            one.get("version", ""),
        )
        for one in document["resources"]
    }


async def test_every_version_that_is_served_is_served_by_the_real_one(tmp_path: Path) -> None:
    assets, why_not = real_assets()
    if assets is None:
        pytest.skip(why_not)
    plane = RealPlane(tmp_path, assets, more=EVERYTHING)
    try:
        await plane.start()
        async with plane.api() as api:
            release = int((await api.get("/version"))["minor"])
            if release not in RELEASES:
                pytest.skip(f"the embedded server does not stand for 1.{release}")
            catalogue = Catalogue(release)
            for group, version in sorted({(one.group, one.version) for one in catalogue} - {(METRICS_GROUP, "v1beta1")}):
                ours = discovery.resource_list(catalogue, group, version)
                assert ours is not None
                real = listed(await api.get(f"/apis/{group}/{version}" if group else f"/api/{version}"))
                assert listed(ours) == {name: real.get(name) for name in listed(ours)}, f"{group}/{version}"
                lacking = {name for name in real if name.partition("/")[0] in listed(ours)} - set(listed(ours))
                assert {(group, version, name) for name in lacking} <= NOT_HERE, f"{group}/{version}"
    finally:
        plane.stop()
