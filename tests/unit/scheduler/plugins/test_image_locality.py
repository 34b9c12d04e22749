"""ImageLocality."""

from __future__ import annotations

from typing import Any

import pytest
from plugin_bench import Bench

from kubesched.kube.api import codec
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.plugins import ImageLocality
from kubesched.scheduler.plugins.image_locality import with_tag
from kubesched.testing import node

MIB = 1024 * 1024


def running(*images: str, init: tuple[str, ...] = (), volumes: tuple[str, ...] = ()) -> Pod:
    def containers(names: tuple[str, ...]) -> list[Any]:
        return [{"name": f"c{i}", "image": image} for i, image in enumerate(names)]

    return codec.convert(
        {
            "metadata": {"name": "p", "namespace": "d", "uid": "u"},
            "spec": {
                "containers": containers(images),
                "initContainers": containers(init),
                "volumes": [{"name": f"v{i}", "image": {"reference": image}} for i, image in enumerate(volumes)],
            },
        },
        Pod,
    )


def test_an_image_on_half_of_the_nodes_counts_half() -> None:
    bench = Bench(
        ImageLocality, node("a", images={"app:1": 500 * MIB}), node("b", images={"app:1": 500 * MIB}), node("c"), node("d")
    )
    assert bench.scores(running("app:1")) == {"a": 23, "b": 23, "c": 0, "d": 0}


def test_two_containers_raise_the_ceiling() -> None:
    bench = Bench(ImageLocality, node("n1", images={"small:1": 40 * MIB}), node("n2", images={"large:1": 250 * MIB}))
    assert bench.scores(running("small:1", "large:1")) == {"n1": 0, "n2": 5}


@pytest.mark.parametrize(
    ("sentence", "wanted", "score"),
    [
        ("an image used twice counts twice", running("app:1", "app:1"), 100 * (1000 - 23) // (2000 - 23)),
        ("an init container's counts", running("x", init=("app:1",)), 100 * (500 - 23) // (2000 - 23)),
        ("a volume's counts", running("x", volumes=("app:1",)), 100 * (500 - 23) // (2000 - 23)),
        ("nothing is worth more than the ceiling", running("huge:1"), 100),
        ("a small image is worth nothing", running("tiny:1"), 0),
        ("an unknown image", running("nobody/has:it"), 0),
    ],
)
def test_what_an_image_is_worth(sentence: str, wanted: Pod, score: int) -> None:
    images = {"app:1": 500 * MIB, "huge:1": 9000 * MIB, "tiny:1": 23 * MIB}
    assert Bench(ImageLocality, node("a", images=images)).scores(wanted) == {"a": score}, sentence


def test_before_1_37_a_volumes_image_counts_without_raising_the_ceiling() -> None:
    bench = Bench(ImageLocality, node("a", images={"app:1": 500 * MIB}), release=(1, 36))
    assert bench.scores(running("x", volumes=("app:1",))) == {"a": 100 * (500 - 23) // (1000 - 23)}


@pytest.mark.parametrize(
    ("name", "looked_up"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1.25", "nginx:1.25"),
        ("reg.example:5000/app", "reg.example:5000/app:latest"),
        ("reg.example:5000/app:2", "reg.example:5000/app:2"),
        ("app@sha256:0123", "app@sha256:0123"),
        ("", ":latest"),
    ],
)
def test_a_name_without_a_tag_means_the_latest(name: str, looked_up: str) -> None:
    assert with_tag(name) == looked_up


def test_registries_are_not_guessed() -> None:
    bench = Bench(ImageLocality, node("a", images={"docker.io/library/nginx:latest": 500 * MIB}))
    assert bench.scores(running("nginx")) == {"a": 0}


def test_all_nodes_of_the_cluster_count_not_only_the_feasible() -> None:
    bench = Bench(ImageLocality, node("a", images={"app:1": 1000 * MIB}), *(node(f"n{i}") for i in range(9)))
    assert bench.scores(running("app:1"), among=["a"]) == {"a": 100 * (100 - 23) // (1000 - 23)}
