"""The experiment of "Beware of Fragmentation" (USENIX ATC 2023) on the public openb trace: six policies, ten seeds.

    kubesched sweep docs/experiments/fgd.py --set trace=FOLDER

FOLDER holds openb_node_list_gpu_node.csv and openb_pod_list_default.csv of Alibaba's cluster-trace-gpu-v2023. Pods come one by
one in an order by seed until they have asked for 130 % of all GPUs; none leaves, and one that fits nowhere is dropped. Every
node is scored by exactly one policy. Among equal nodes the authors take the first by a number that every node got by chance
(`shuffled`); `ties=shuffled,uniform` runs each policy with both ways to choose, the second is kube-scheduler's.
"""

from pathlib import Path

from kubesched.contrib.gpu_fragmentation import typical_pods
from kubesched.contrib.gpu_table import COUNT, MILLI, MODEL, GpuRequest
from kubesched.kube.values.quantity import milli_value, parse
from kubesched.tools.simulation.traces import TracedPod, read_trace

POLICIES = {
    "Random": ("kubesched.contrib.gpu_random:RandomScore", "random"),
    "DotProd": ("kubesched.contrib.gpu_dot_product:DotProductScore", "best"),
    "Clustering": ("kubesched.contrib.gpu_clustering:GpuClusteringScore", "best"),
    "Packing": ("kubesched.contrib.gpu_packing:GpuPackingScore", "best"),
    "BestFit": ("kubesched.contrib.gpu_best_fit:BestFitScore", "best"),
    "FGD": ("kubesched.contrib.gpu_fragmentation:FGDScore", "FGDScore"),
}


def experiment(
    trace: str, pods: str = "openb_pod_list_default.csv", seeds: str = "10", ties: str = "shuffled", load: str = "1.3"
):
    folder = Path(trace).resolve()
    typical = [
        {
            "cpuMilli": pod.cpu_milli,
            "gpuCount": pod.gpu_count,
            "gpuMilli": pod.gpu_milli,
            "gpuModels": list(pod.gpu_models),
            "frequency": pod.frequency,
        }
        for pod in typical_pods(map(kind_of, read_trace(folder / pods, "openb")))
    ]
    return {
        "name": "fgd",
        "scenarios": {
            Path(pods).stem: {
                "duration": 40_000,
                "decisionTime": 0,
                "sampleEvery": 1000,
                "cluster": {"nodeLists": [{"file": str(folder / "openb_node_list_gpu_node.csv"), "format": "openb"}]},
                "workloads": [
                    {
                        "name": "openb",
                        "restarts": False,
                        "patience": 0.5,
                        "arrivals": {
                            "trace": str(folder / pods),
                            "format": "openb",
                            "order": "shuffled",
                            "load": {"gpu": float(load)},
                            "durations": "forever",
                        },
                    }
                ],
            }
        },
        "plugins": ["kubesched.contrib.gpu_share:OpenGpuShare", *(plugin for plugin, _ in POLICIES.values())],
        "configurations": {name: configuration(*policy, typical) for name, policy in POLICIES.items()},
        "parameters": {"scenario.ties": ties.split(",")},
        "seeds": {"start": 42, "count": int(seeds)},
        "measures": ["kubesched.tools.experiments.gpu_allocation:gpu_allocation"],
        "baseline": "Random",
        "report": ["gpu.unallocatedAt100", "gpu.allocated", "gpu.fragmentedAt100"],
    }


def configuration(plugin, gpu_selection, typical):
    """One policy alone scores; resources and GPUs are all that is filtered by."""
    policy = plugin.partition(":")[2]
    names = ["PrioritySort", "NodeResourcesFit", "DefaultBinder", "Open-Gpu-Share", policy]
    arguments = [{"name": "Open-Gpu-Share", "args": {"gpuSelMethod": gpu_selection}}]
    if policy == "FGDScore":
        arguments.append({"name": policy, "args": {"typicalPods": typical}})
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {
                    "multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in names]},
                    "score": {"disabled": [{"name": "NodeResourcesFit"}]},
                },
                "pluginConfig": arguments,
            }
        ],
    }


def kind_of(pod: TracedPod):
    """What a pod asks for, as the fragmentation of nodes is measured against."""
    said = pod.annotations
    models = frozenset(filter(None, said.get(MODEL, "").split("|")))
    gpus = GpuRequest(int(said[COUNT]), int(said[MILLI]), models) if said else GpuRequest()
    return milli_value(parse(pod.requests["cpu"])), gpus
