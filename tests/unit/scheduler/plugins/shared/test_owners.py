"""Which services select a pod: found by one label each, and the same as by looking at all of them."""

from __future__ import annotations

from random import Random

import pytest

from kubesched.kube.api import EVERYTHING
from kubesched.kube.api.core import Service, ServiceSpec
from kubesched.kube.api.meta import ObjectMeta
from kubesched.scheduler.cluster import Objects, PodView, Store
from kubesched.scheduler.plugins.shared.owners import ServicesByLabel, default_selector
from kubesched.testing import pod

NAMESPACES, KEYS, VALUES = ("default", "other"), ("app", "tier", "track"), ("a", "b", "")


def service(name: str, selector: dict[str, str] | None, namespace: str = "default") -> Service:
    return Service(metadata=ObjectMeta(name=name, namespace=namespace), spec=ServiceSpec(selector=selector))


def by_looking_at_all(view: PodView, objects: Objects) -> list[dict[str, str]]:
    """The obvious way."""
    services = objects.named(Service, view.namespace).values()
    wanted = [dict(each.spec.selector) for each in services if each.spec.selector]
    return [each for each in wanted if all(view.labels.get(key) == value for key, value in each.items())]


def drawn(random: Random) -> dict[str, str]:
    return {key: random.choice(VALUES) for key in random.sample(KEYS, random.randrange(len(KEYS) + 1))}


@pytest.mark.parametrize("seed", range(20))
def test_services_are_found_as_they_come_change_and_go(seed: int) -> None:
    random, objects, store = Random(seed), Objects(), Store()
    found = ServicesByLabel(objects)
    for turn in range(60):
        name, namespace = f"s{random.randrange(8)}", random.choice(NAMESPACES)
        if random.random() < 0.3:
            objects.drop(Service, name, namespace)
        else:
            objects.put(service(name, drawn(random), namespace=namespace))
        if random.random() < 0.5:
            view = store.view(pod(f"p{turn}", namespace=random.choice(NAMESPACES), labels=drawn(random)))
            expected = sorted(sorted(each.items()) for each in by_looking_at_all(view, objects))
            assert sorted(sorted(each.items()) for each in found.selecting(view)) == expected


def test_nothing_is_kept_of_services_that_are_gone() -> None:
    objects, view = Objects(), Store().view(pod("p", labels={"app": "a"}))
    found = objects.shared(ServicesByLabel)
    objects.put(service("s", {"app": "a"}))
    assert list(found.selecting(view)) == [{"app": "a"}]
    objects.put(service("s", None))
    assert list(found.selecting(view)) == [] and not found._selectors
    assert default_selector(view, objects) is EVERYTHING
