"""ImageLocality."""

from __future__ import annotations

from typing import Any

from oracles.cluster import Oracle
from oracles.quantities import divided

Raw = dict[str, Any]
MIB = 1024 * 1024


class ImageLocality(Oracle):
    name = "ImageLocality"
    scores = True

    def score(self, pod: Raw, node: Raw) -> int:
        spec = pod["spec"]
        containers = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
        images = [container.get("image", "") for container in containers]
        images += [v["image"].get("reference", "") for v in spec.get("volumes") or [] if v.get("image") is not None]
        total = 0
        for image in images:
            known = self.cluster.image(with_tag(image))
            if known is not None and node["metadata"]["name"] in known[1]:
                size, holders = known
                total += int(float(size) * (float(len(holders)) / float(len(self.cluster.nodes))))
        least, most = 23 * MIB, 1000 * MIB * len(containers)
        if total < least:
            total = least
        elif total > most:
            total = most
        return divided(100 * (total - least), most - least)


def with_tag(image: str) -> str:
    return image + ":latest" if image.rfind(":") <= image.rfind("/") else image
