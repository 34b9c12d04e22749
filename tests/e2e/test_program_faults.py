"""The whole program and an API server that is killed, restarted, frozen, not there yet, or refuses: all pods that fit are
bound, none twice, and what it believes equals the API. A bad network in between is in tests/chaos.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

from control_planes import Api, ControlPlane
from replicas import Replica, Replicas, agree, check_bound_once

N_NODES = 12
TOO_LARGE = "too-large"
# A lease long enough to outlive a streak of bad luck: losing it would end the run, which is tested elsewhere.
PATIENT = ("--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=50s", "--leader-elect-retry-period=2s")


async def settle(api: Api, replicas: Replicas, replica: Replica) -> None:
    """Wait until all pods that fit are bound and known, and check what must never happen."""
    await api.until_bound(sum(1 for pod in await api.pods() if pod["metadata"]["name"] != TOO_LARGE))
    await agree(replica, api, seconds=60.0)
    nodes = (await api.get("/api/v1/nodes"))["items"]
    check_bound_once(await api.pods(), nodes, *(one.witness for one in replicas.all))
    assert replica.is_running, replica.last_words()


async def add_too_large(api: Api) -> None:
    """Add a pod that fits nowhere: it must be known as pending in the end, and be told so."""
    await api.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": TOO_LARGE, "namespace": "default"},
            "spec": {"containers": [{"name": "main", "image": "app", "resources": {"requests": {"cpu": "100"}}}]},
        }
    )


async def test_an_api_server_that_hangs_is_killed_and_restarted(
    control_plane: ControlPlane, api: Api, replicas: Replicas
) -> None:
    await api.add_nodes(N_NODES)
    await add_too_large(api)
    replica = await replicas.start(*PATIENT)
    await api.add_pods(0, 20)
    await api.until_bound(5)
    server = control_plane.processes[-1]
    server.send_signal(signal.SIGSTOP)  # connections stand, and nobody answers
    await asyncio.sleep(1.5)
    server.send_signal(signal.SIGCONT)
    await api.add_pods(20, 20)
    await api.until_bound(25)
    for number in (2, 3):
        control_plane.kill()
        await asyncio.sleep(0.3)
        await control_plane.start()
        await api.delete("/api/v1/namespaces/default/pods/pod-0")
        await api.add_pods(20 * number, 20)
        await api.add_pods(0, 1)
    await settle(api, replicas, replica)


async def test_an_api_server_that_comes_later_is_waited_for(control_plane: ControlPlane, api: Api, replicas: Replicas) -> None:
    await api.add_nodes(2)
    await api.add_pods(0, 4)
    control_plane.kill()
    waiting, leaving = await replicas.start(*PATIENT), await replicas.start(*PATIENT)
    await asyncio.gather(waiting.witness.stop(), leaving.witness.stop())  # connections are refused
    for replica in (waiting, leaving):
        await replica.until_says("connection refused; is the API server running there? The address comes from kubeconfig")
    leaving.send(signal.SIGTERM)
    assert await leaving.ended() == 0, leaving.last_words()
    await control_plane.start()
    await waiting.witness.start()
    await settle(api, replicas, waiting)


async def test_refusals_are_named_with_their_remedy_and_its_application_noticed(
    control_plane: ControlPlane, api: Api, replicas: Replicas
) -> None:
    """First the token has expired, then the role may not list nodes, then it may not bind; the reference goes on, too."""
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/kubesched"
    rules = (await api.get(path))["rules"]

    def without(resource: str) -> dict[str, object]:
        left = [{**rule, "resources": [one for one in rule["resources"] if one != resource]} for rule in rules]
        return {"rules": [rule for rule in left if rule["resources"]]}

    await api.add_nodes(2)
    await api.patch(path, without("nodes"))
    token = control_plane.folder / "token"
    token.write_text("expired")
    replica = await replicas.start(token_file=token)
    await replica.until_says("the API server does not accept these credentials; renew the token")
    token.write_text("scheduler")
    await replica.until_says("cannot follow nodes")
    assert replica.says('cannot list resource \\"nodes\\"') and replica.says("grant the verb named here")
    assert not replica.says("attempting to acquire leader lease")  # it does not lead before it knows the cluster
    await api.patch(path, without("pods/binding"))
    await replica.until_says("following nodes again")
    await api.add_pods(0, 3)
    await replica.until_says('cannot create resource \\"pods/binding\\"')
    await api.patch(path, {"rules": rules})
    await settle(api, replicas, replica)


BAD_KUBECONFIGS = {
    "missing": (None, "no such file"),
    "not YAML": ("{", "kubeconfig"),
    "empty": ("", "kubeconfig"),
    "another kind of file": ("[1, 2]", "not a kubeconfig"),
    "no server": (
        '{"current-context": "a", "clusters": [{"name": "a", "cluster": {}}], "users": [],'
        ' "contexts": [{"name": "a", "context": {"cluster": "a"}}]}',
        "server",
    ),
    "no such context": ('{"current-context": "b", "clusters": [], "users": [], "contexts": []}', "b"),
}


# Imports take most of a start's time, so all cases are children of one process that has them done.
ONE_AFTER_ANOTHER = """
import os, sys
import kubesched.server.app
from kubesched.cli import main
for path in sys.argv[1:]:
    if os.fork() == 0:
        os.dup2(os.open(path + ".said", os.O_CREAT | os.O_WRONLY), 2)
        sys.argv = ["kubesched", "run", "--kubeconfig=" + path, "--secure-port=0"]
        main()
        os._exit(0)
    open(path + ".code", "w").write(str(os.waitstatus_to_exitcode(os.wait()[1])))
"""


def test_a_kubeconfig_that_cannot_be_used_is_told_in_one_line(tmp_path: Path) -> None:
    files = {name: tmp_path / f"{name}.kubeconfig" for name in BAD_KUBECONFIGS}
    for name, (text, _) in BAD_KUBECONFIGS.items():
        if text is not None:
            files[name].write_text(text)
    subprocess.run([sys.executable, "-c", ONE_AFTER_ANOTHER, *map(str, files.values())], check=True, timeout=60)
    for name, (_, expected) in BAD_KUBECONFIGS.items():
        said = Path(f"{files[name]}.said").read_text(encoding="utf-8")
        lines = [line for line in said.splitlines() if not line.startswith("I")]
        assert Path(f"{files[name]}.code").read_text(encoding="utf-8") == "1", (name, said)
        assert len(lines) == 1 and str(files[name]) in lines[0] and expected in lines[0], (name, said)
