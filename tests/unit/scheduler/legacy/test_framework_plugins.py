"""The framework of 1.17: plugins of one's own beside predicates and priorities, and what all of it comes to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from legacy_clusters import node, pod

from kubesched.errors import ConfigError
from kubesched.kube.api import codec
from kubesched.scheduler import config
from kubesched.scheduler.config import Args
from kubesched.scheduler.config.documents.reading import read_json
from kubesched.scheduler.config.documents.wire import Raw, decode
from kubesched.scheduler.config.types import PluginConfig
from kubesched.scheduler.engine.assembly import Ports, assemble, default_configuration, new_handle
from kubesched.scheduler.framework import Plugin, unschedulable
from kubesched.scheduler.legacy import Algorithm, Options, load_policy, profile_from_policy, profile_from_provider
from kubesched.scheduler.legacy.framework_plugins import OldPlugins


class DiskArgs(Args, frozen=True, rename="camel"):
    label: str = "disk"


class Disk(Plugin):
    """Wants a label, likes the nodes late in the alphabet, and writes down what it is asked."""

    Args = DiskArgs

    def __init__(self, args: DiskArgs, handle: Any) -> None:
        super().__init__(args, handle)
        self.said: list[str] = []

    def filter_node(self, pod: Any, node: Any, state: Any) -> Any:
        return None if self.args.label in node.labels else "node(s) had no disk"

    def pre_score(self, pod: Any, nodes: Any, feasible: Any, state: Any) -> None:
        self.said.append("PostFilter")

    def score_node(self, pod: Any, node: Any, state: Any) -> int:
        return ord(node.name[0]) - ord("a")

    def reserve(self, pod: Any, node_name: str, state: Any) -> Any:
        self.said.append("Reserve")
        return unschedulable("not today") if pod.name == "late" else None

    def unreserve(self, pod: Any, node_name: str, state: Any) -> None:
        self.said.append("Unreserve")


class Newest(Plugin):
    """Sort pods by falling age."""

    def sort_key(self, pod: Any, queued_at: float) -> Any:
        return -queued_at


POLICY = """{"kind": "Policy", "apiVersion": "v1",
 "predicates": [{"name": "PodFitsResources"},
                {"name": "L", "argument": {"labelsPresence": {"labels": ["x"], "presence": false}}}],
 "priorities": [{"name": "LeastRequestedPriority", "weight": 2}]}"""


def enabling(**points: list[Any]) -> OldPlugins:
    """Return `plugins` that enable names, or names with weights, at points of 1.17."""
    document: dict[str, dict[str, list[dict[str, Any]]]] = {point: {"enabled": []} for point in points}
    for point, entries in points.items():
        for entry in entries:
            name, weight = entry if isinstance(entry, tuple) else (entry, 0)
            document[point]["enabled"].append({"name": name, "weight": weight})
    decoded, complaints = decode(OldPlugins, read_json(json.dumps(document)))
    assert not complaints
    return decoded


def telling(name: str, **args: Any) -> PluginConfig:
    return PluginConfig(name, Raw(read_json(json.dumps(args))))


def built(plugins: OldPlugins, policy: str = POLICY, **options: Any) -> tuple[Algorithm, tuple[Any, Any]]:
    prepared = new_handle(config.Gates.defaults(), Ports())
    given = Options(plugins=plugins, brought=(Disk, Newest), **options)
    if policy:
        return profile_from_policy(load_policy(policy, "1.17"), prepared[1], "1.17", given), prepared
    return profile_from_provider("", prepared[1], "1.17", given), prepared


EVERYWHERE = {"filter": ["Disk"], "postFilter": ["Disk"], "score": [("Disk", 3)], "reserve": ["Disk"], "unreserve": ["Disk"]}


def test_a_plugin_of_ones_own_runs_beside_predicates_and_priorities() -> None:
    algorithm, prepared = built(enabling(**EVERYWHERE), plugin_config=(telling("Disk", label="ssd"),))
    engine = assemble(
        default_configuration(config.Gates.defaults()),
        config.Gates.defaults(),
        profiles={algorithm.profile.name: algorithm.profile},
        prepared=prepared,
    )
    placed: list[str] = []
    engine.bookings.hand_over = lambda placement: placed.append(f"{placement.booked.name} on {placement.node_name}")
    engine.failures.writes = False
    nodes = [node("a", labels={"ssd": ""}), node("b", labels={"ssd": ""}), node("c"), node("d", labels={"ssd": "", "x": ""})]
    for raw in (*nodes, pod("web", schedulerName="default-scheduler"), pod("late", schedulerName="default-scheduler")):
        engine.intake.apply(raw["kind"], None, codec.decode(raw))
    while engine.step():
        pass
    (disk,) = {plugin for plugin in algorithm.profile.plugins if isinstance(plugin, Disk)}
    assert placed == ["web on b"]
    assert disk.said == ["PostFilter", "Reserve", "PostFilter", "Reserve", "Unreserve"]


def test_the_final_plugins_and_their_configuration_are_shown() -> None:
    algorithm, _ = built(enabling(**EVERYWHERE), plugin_config=(telling("Disk", label="ssd"),))
    assert algorithm.framework is not None
    filters = ("NodeUnschedulable", "NodeResourcesFit", "TaintToleration", "NodeLabel", "Disk")
    assert algorithm.framework.document() == {
        "plugins": {
            "filter": {"enabled": [{"name": name} for name in filters]},
            "reserve": {"enabled": [{"name": "Disk"}]},
            "postFilter": {"enabled": [{"name": "Disk"}]},
            "score": {"enabled": [{"name": "NodeResourcesLeastAllocated", "weight": 2}, {"name": "Disk", "weight": 3}]},
            "unreserve": {"enabled": [{"name": "Disk"}]},
        },
        "pluginConfig": [
            {"name": "NodeLabel", "args": {"absentLabels": ["x"]}},
            {"name": "Disk", "args": {"label": "ssd"}},
        ],
    }


def test_a_plugin_that_sorts_takes_the_place_of_the_releases_own() -> None:
    algorithm, _ = built(enabling(queueSort=["Newest"]))
    assert isinstance(algorithm.profile.sorter, Newest)


def test_a_plugin_of_the_release_can_be_enabled_by_its_name() -> None:
    algorithm, _ = built(enabling(filter=["NodeName"], score=[("ImageLocality", 5)]))
    names = [plugin.name for plugin in algorithm.profile.plugins]
    assert "HostName" in names and "ImageLocalityPriority" in names


PREFIX = "error initializing the scheduling framework: "
BROKEN: list[tuple[str, dict[str, list[Any]], str]] = [
    ("nobody's", {"filter": ["Nobody"]}, 'FilterPlugin "Nobody" does not exist'),
    ("not there", {"permit": ["Disk"]}, 'plugin "Disk" does not extend PermitPlugin plugin'),
    ("twice", {"filter": ["Disk", "Disk"]}, 'plugin "Disk" already registered as "FilterPlugin"'),
    ("a predicate's", {"filter": ["NodeResourcesFit"]}, 'plugin "NodeResourcesFit" already registered as "FilterPlugin"'),
    ("two that sort", {"queueSort": ["Newest", "Other"]}, 'QueueSortPlugin "Other" does not exist'),
    (
        "one with arguments",
        {"score": ["NodeLabel"]},
        'error initializing plugin "NodeLabel": its arguments are read from a policy',
    ),
]


@pytest.mark.parametrize(("what", "points", "error"), BROKEN, ids=[case[0] for case in BROKEN])
def test_what_cannot_work_is_refused_in_the_words_of_then(what: str, points: dict[str, list[Any]], error: str) -> None:
    with pytest.raises(ConfigError) as raised:
        built(enabling(**points))
    assert str(raised.value) == PREFIX + error


def test_arguments_that_a_plugin_does_not_take_are_refused() -> None:
    with pytest.raises(ConfigError, match=r'error initializing plugin "Disk": unknown field "colour"'):
        built(enabling(filter=["Disk"]), plugin_config=(telling("Disk", colour="red"),))


def test_a_plugin_under_a_name_of_the_releases_is_refused() -> None:
    class ImageLocality(Plugin):
        def score_node(self, pod: Any, node: Any, state: Any) -> int:
            return 0

    prepared = new_handle(config.Gates.defaults(), Ports())
    with pytest.raises(ConfigError, match="a plugin named ImageLocality already exists"):
        profile_from_provider("", prepared[1], "1.17", Options(brought=(ImageLocality,)))
