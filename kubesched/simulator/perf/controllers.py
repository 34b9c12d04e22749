"""The embedded API server of a benchmark, as a program: the API, and the controllers that scheduler_perf runs beside it.

In: where to write the kubeconfig. Out: a server until SIGTERM. Claims are made from templates, volumes are bound, owners and
namespaces take along what is theirs; there is no kubelet, so a pod that has a node stays as it is, and nobody expects a node
to report. Pods bring the number of their priority along.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from pathlib import Path

from kubesched.apiserver import ApiServer, ObjectStore
from kubesched.apiserver.fake_cluster import INSTANT
from kubesched.apiserver.fake_cluster.event_recorder import EventRecorder
from kubesched.apiserver.fake_cluster.garbage_collector import GarbageCollector
from kubesched.apiserver.fake_cluster.pods import PodIndex
from kubesched.apiserver.fake_cluster.resource_claims import ResourceClaimController
from kubesched.apiserver.fake_cluster.volumes import Volumes
from kubesched.serving import raise_file_limit


class Controllers:
    """What acts on claims, volumes, owners and namespaces."""

    def __init__(self, store: ObjectStore) -> None:
        silent = EventRecorder(store, False)
        self._parts = (
            Volumes(store, INSTANT, silent),
            ResourceClaimController(store, PodIndex(store), silent),
            GarbageCollector(store),
        )

    def start(self) -> None:
        """Begin to react."""
        for part in self._parts:
            part.start()

    def stop(self) -> None:
        """React to nothing any more."""
        for part in self._parts:
            part.stop()


async def serve(kubeconfig: Path) -> None:
    """Serve until told to end; the kubeconfig is there once the server listens."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with ApiServer(ObjectStore(has_priority_admission=False)) as server:
        controllers = Controllers(server.store)
        controllers.start()
        server.write_kubeconfig(kubeconfig)
        print(server.url, flush=True)
        await stopped.wait()
        controllers.stop()


if __name__ == "__main__":
    raise_file_limit()
    gc.freeze()
    asyncio.run(serve(Path(sys.argv[1])))
