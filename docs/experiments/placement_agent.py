"""An agent that learns to place pods of the openb trace, against LeastAllocated.

    python docs/experiments/placement_agent.py FOLDER [--nodes 60] [--rounds 8]

FOLDER as for fgd.py. The agent scores nodes by a weighted sum of what would be left on them, and learns the weights by the
cross-entropy method: candidates are drawn around the best so far, each plays an episode of `kubesched/Placement-v0` on a
part of the cluster, the best quarter says where the next are drawn. It is judged with seeds that it has not seen, on the
same part and on the whole cluster, by the percentage of all GPUs in use when 130 % of them have been asked for.
"""

import argparse
import csv
import tempfile
from pathlib import Path

import gymnasium
import numpy as np

import kubesched.tools.experiments.environments  # noqa: F401 (registers the environments)

NODES, PODS = "openb_node_list_gpu_node.csv", "openb_pod_list_default.csv"
SHARE = "kubesched.contrib.gpu_share:OpenGpuShare"
CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "plugins": {
                "multiPoint": {
                    "disabled": [{"name": "*"}],
                    "enabled": [{"name": n} for n in ("PrioritySort", "NodeResourcesFit", "DefaultBinder", "Open-Gpu-Share")],
                }
            }
        }
    ],
}
N_FEATURES = 6


def scenario(trace, nodes):
    """The experiment's arrivals on one node list."""
    arrivals = {
        "trace": str(trace / PODS),
        "format": "openb",
        "order": "shuffled",
        "load": {"gpu": 1.3},
        "durations": "forever",
    }
    return {
        "duration": 40_000,
        "decisionTime": 0,
        "sampleEvery": 10_000,
        "cluster": {"nodeLists": [{"file": str(nodes), "format": "openb"}]},
        "workloads": [{"name": "openb", "restarts": False, "patience": 0.5, "arrivals": arrivals}],
    }


def features(seen):
    """What is left on every node once the pod is there, and what that would spoil: a row a node."""
    nodes, pod = seen["nodes"], seen["pod"]
    cpu, memory, gpu, piece = nodes[:, 0] - pod[0], nodes[:, 2] - pod[1], nodes[:, 4] - pod[2], nodes[:, 6]
    cpu_of_gpu = cpu / np.maximum(gpu, 0.05)
    return np.stack([cpu, memory, gpu, piece, np.minimum(cpu_of_gpu, 4.0), nodes[:, 5] * (pod[2] == 0)], axis=1)


def learned(weights):
    return lambda seen: features(seen) @ weights


def least_allocated(seen):
    """NodeResourcesFit's default strategy: the mean free share of cpu and memory, of what the node itself offers."""
    nodes, pod = seen["nodes"], seen["pod"]
    return (nodes[:, 0] - pod[0]) / np.maximum(nodes[:, 1], 1e-6) + (nodes[:, 2] - pod[1]) / np.maximum(nodes[:, 3], 1e-6)


def play(env, score, seed):
    """Return what is in use at the end of an episode, in percent."""
    seen, info = env.reset(seed=seed)
    total, is_over = 0.0, False
    while not is_over:
        action = np.where(info["action_mask"], score(seen), -np.inf).argmax()
        seen, reward, is_over, _, info = env.step(action)
        total += float(reward)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=60, help="nodes of the part that it learns on")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--candidates", type=int, default=16)
    parser.add_argument("--whole", type=int, default=1, help="seeds on the whole cluster")
    given = parser.parse_args()
    trace, chance = given.folder.resolve(), np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "nodes.csv"
        rows = list(csv.reader((trace / NODES).open(encoding="utf-8")))
        step = max((len(rows) - 1) // given.nodes, 1)
        with part.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([rows[0], *rows[1::step]])
        make = lambda nodes: gymnasium.make(  # noqa: E731
            "kubesched/Placement-v0",
            scenario=scenario(trace, nodes),
            configuration=CONFIGURATION,
            plugins=[SHARE],
            reward="gpu",
            disable_env_checker=True,
        )
        env = make(part)
        mean, spread = np.zeros(N_FEATURES), np.ones(N_FEATURES)
        for i in range(given.rounds):
            candidates = mean + spread * chance.standard_normal((given.candidates, N_FEATURES))
            returns = np.array([play(env, learned(weights), seed=i) for weights in candidates])
            elite = candidates[np.argsort(-returns)[: max(given.candidates // 4, 2)]]
            mean, spread = elite.mean(axis=0), elite.std(axis=0) + 0.05
            print(f"round {i}: best {returns.max():.2f} %, mean {returns.mean():.2f} %", flush=True)
        print("weights:", np.round(mean, 2).tolist())
        for title, nodes, seeds in (
            ("the part", part, range(1000, 1005)),
            ("the whole cluster", trace / NODES, range(1000, 1000 + given.whole)),
        ):
            env = make(nodes)
            ours = [play(env, learned(mean), seed) for seed in seeds]
            theirs = [play(env, least_allocated, seed) for seed in seeds]
            for seed, a, b in zip(seeds, ours, theirs, strict=True):
                print(f"{title}, seed {seed}: agent {a:.2f} %, LeastAllocated {b:.2f} %, difference {a - b:+.2f}", flush=True)


if __name__ == "__main__":
    main()
