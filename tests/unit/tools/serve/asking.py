"""A service without processes: questions are answered at once, by a cluster of the test's own."""

from __future__ import annotations

from kubesched.solver import Cluster
from kubesched.tools.serve.metrics import ServeMetrics
from kubesched.tools.serve.questions import AskedCluster
from kubesched.tools.serve.solver_process import answered
from kubesched.tools.serve.wire import Ask, Refusal, Reply


class AtOnce:
    """Stands in for a `Service`."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.metrics = cluster, ServeMetrics()
        self.asked: list[tuple[str, str]] = []
        self.refuses: Refusal | None = None

    async def ask(self, caller: str, call: str, body: bytes, *, session: str = "", seconds: float | None = None) -> Reply:
        self.asked.append((caller, call))
        if self.refuses is not None:
            raise self.refuses
        reply = answered(AskedCluster(self.cluster), Ask(1, call, body, seconds or 1.0))
        if reply.code:
            raise Refusal(reply.code, reply.body.decode())
        return reply
