"""A program: the embedded API server with the controllers that scheduler_perf runs.

In: where to write the kubeconfig. Out: a server until SIGTERM. Its controllers create claims from templates, bind volumes, and
collect garbage. There is no kubelet: a pod with a node does not start, and a node needs no heartbeat. There is no priority
admission: pods carry the number of their priority.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from pathlib import Path

from kubesched.embedded import ApiServer, ObjectStore
from kubesched.embedded.controllers import INSTANT, ControllerContext, Parts
from kubesched.embedded.controllers.garbage_collector import GarbageCollector
from kubesched.embedded.controllers.resource_claims import ResourceClaimController
from kubesched.embedded.controllers.volumes import Volumes
from kubesched.http import raise_file_limit


def controllers_of(store: ObjectStore) -> Parts:
    """Return the controllers of volumes, claims, owners and namespaces."""
    context = ControllerContext(store, INSTANT, events=False)
    return Parts((Volumes(context), ResourceClaimController(context), GarbageCollector(context)))


async def serve(kubeconfig: Path) -> None:
    """Serve until SIGINT or SIGTERM; the kubeconfig is written when the server listens."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with ApiServer(ObjectStore(has_priority_admission=False)) as server:
        controllers = controllers_of(server.store)
        controllers.start()
        server.write_kubeconfig(kubeconfig)
        print(server.url, flush=True)
        await stopped.wait()
        controllers.stop()


if __name__ == "__main__":
    raise_file_limit()
    gc.freeze()
    asyncio.run(serve(Path(sys.argv[1])))
