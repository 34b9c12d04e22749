"""ImageLocality: prefer nodes that already hold the pod's images.

An image counts with its size times the share of nodes that hold it, so that not all pods of a new image go to the first node
with it:

    image 600 MiB, on 2 of 4 nodes: worth 300 MiB           1 container: range 23 MiB to 1000 MiB
    score of the 2 nodes: 100 * (300 - 23) // (1000 - 23) = 28, of the others: 0
"""

from __future__ import annotations

import numpy as np

from kubesched.scheduler.cluster import Ints
from kubesched.scheduler.framework import CycleState, Handle, Input, Plugin, PodView, Snapshot

MEBI = 1024 * 1024
LEAST = 23 * MEBI
"""A smaller image is pulled so fast that it does not matter."""
MOST_PER_CONTAINER = 1000 * MEBI


class ImageLocality(Plugin):
    # The share of nodes with an image depends on all nodes.
    depends_on = (Input.POD_REQUIREMENTS, Input.NODE, Input.ALL_NODES)

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._counts_volumes = handle.gates.behaviour.counts_image_volumes

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        """Return the sum of the worth of the pod's images on each node, clamped to 23 MiB and 1000 MiB for each image, scaled
        to 100. Images of init containers count; volumes with images add worth, and since 1.37 also raise the upper limit."""
        spec = pod.pod.spec
        # The limits are for all images of the pod together: at least 23 MiB, at most 1000 MiB for each one that is
        # counted.
        images = [c.image for c in (*spec.init_containers, *spec.containers)]
        volumes = [volume.image.reference for volume in spec.volumes if volume.image is not None]
        n_counted = len(images) + (len(volumes) if self._counts_volumes else 0)
        held = [
            image_state
            for image_state in (nodes.image(with_tag(image)) for image in images + volumes)
            if image_state is not None
        ]
        if not held:
            return nodes.uniform(0)
        here = np.zeros(nodes.n, dtype=np.int64)
        for image_state in held:
            # In floating point, in kube-scheduler's order, and then truncated: the last unit may decide.
            worth = int(float(image_state.size) * (float(len(image_state.rows)) / float(nodes.total)))
            here[nodes.mask(image_state.rows)] += worth
        most = MOST_PER_CONTAINER * n_counted
        clamped = np.where(here < LEAST, LEAST, np.minimum(here, most))
        scores: Ints = 100 * (clamped - LEAST) // (most - LEAST)
        return scores


def with_tag(image: str) -> str:
    """Return an image name with its tag; `latest` if it has none. A colon before the last slash is a port."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
