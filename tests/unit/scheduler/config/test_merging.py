"""The merge rules: laws that hold for any plugin sets, and the reference's own order by example."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.errors import ConfigError
from kubesched.scheduler.config import Gates
from kubesched.scheduler.config.catalogue import POINT_TYPES, POINTS, Known, at_release, default_plugins
from kubesched.scheduler.config.merging import expand, merge, merge_set, weigh
from kubesched.scheduler.config.types import Configured, Plugin, Plugins, PluginSet
from kubesched.scheduler.plugins.args import IN_TREE_CATALOGUE

CATALOGUE = at_release(IN_TREE_CATALOGUE, (1, 36))
NAMES = ["A", "B", "C", "D", "E"]

plugin_lists = st.lists(st.builds(Plugin, st.sampled_from(NAMES), st.integers(0, 5)), max_size=5)
unique_lists = st.lists(st.builds(Plugin, st.sampled_from(NAMES), st.integers(0, 5)), max_size=5, unique_by=lambda p: p.name)
disabled_lists = st.lists(st.builds(Plugin, st.sampled_from([*NAMES, "*"])), max_size=3)


def plugin_set(enabled: list[Plugin], disabled: list[Plugin]) -> PluginSet:
    return PluginSet(tuple(enabled) or None, tuple(disabled) or None)


custom_sets = st.builds(plugin_set, plugin_lists, disabled_lists)
unique_sets = st.builds(plugin_set, unique_lists, disabled_lists)
default_sets = st.builds(plugin_set, unique_lists, st.just([]))


@given(default_sets)
def test_saying_nothing_changes_nothing(default: PluginSet) -> None:
    assert merge_set(default, PluginSet()) == default


@given(default_sets, custom_sets)
def test_a_star_leaves_exactly_the_users_list(default: PluginSet, custom: PluginSet) -> None:
    starred = PluginSet(custom.enabled, (Plugin("*"), *(custom.disabled or ())))
    assert merge_set(default, starred).enabled == custom.enabled


@given(default_sets, custom_sets)
def test_everything_the_user_enables_is_enabled_as_often_as_named(default: PluginSet, custom: PluginSet) -> None:
    merged = merge_set(default, custom).enabled_names
    for name in custom.enabled_names:
        assert merged.count(name) == custom.enabled_names.count(name)


@given(default_sets, custom_sets)
def test_a_disabled_default_comes_back_only_if_named(default: PluginSet, custom: PluginSet) -> None:
    merged = merge_set(default, custom).enabled_names
    for name in default.enabled_names:
        if name in custom.disabled_names and name not in custom.enabled_names:
            assert name not in merged


@given(default_sets, unique_sets)
def test_defaults_keep_their_order_and_the_users_weight_wins(default: PluginSet, custom: PluginSet) -> None:
    merged = merge_set(default, custom)
    off = custom.disabled_names
    kept = [name for name in default.enabled_names if name not in off and "*" not in off]
    assert merged.enabled_names[: len(kept)] == kept
    weights = {plugin.name: plugin.weight for plugin in merged.enabled or ()}
    assert all(weights[plugin.name] == plugin.weight for plugin in custom.enabled or ())


@given(default_sets, custom_sets)
def test_disabled_names_are_the_users_and_lose_their_weight(default: PluginSet, custom: PluginSet) -> None:
    merged = merge_set(default, custom)
    assert [plugin.name for plugin in merged.disabled or ()] == [plugin.name for plugin in custom.disabled or ()]
    assert all(plugin.weight == 0 for plugin in merged.disabled or ())


def test_disabling_and_enabling_moves_a_plugin_to_the_end() -> None:
    default = plugin_set([Plugin("A"), Plugin("B", 2), Plugin("C")], [])
    merged = merge_set(default, plugin_set([Plugin("B", 7)], [Plugin("B")]))
    assert merged.enabled == (Plugin("A"), Plugin("C"), Plugin("B", 7))


def test_the_last_of_two_entries_replaces_and_the_first_is_kept_for_the_refusal() -> None:
    default = plugin_set([Plugin("A", 1)], [])
    merged = merge_set(default, plugin_set([Plugin("A", 2), Plugin("A", 3)], []))
    assert merged.enabled == (Plugin("A", 3), Plugin("A", 2))


EVERYWHERE = {name: Known(frozenset(POINTS)) for name in NAMES}


@given(unique_lists, unique_lists, disabled_lists)
def test_a_point_is_overridden_first_then_general_then_the_rest(
    general: list[Plugin], explicit: list[Plugin], disabled: list[Plugin]
) -> None:
    plugins = Plugins(multi_point=plugin_set(general, []), filter=plugin_set(explicit, disabled))
    order = [plugin.name for plugin in expand(plugins, EVERYWHERE)["filter"]]
    named = [plugin.name for plugin in explicit]
    off = {plugin.name for plugin in disabled}
    if "*" in off:
        assert order == named
        return
    reached = [plugin.name for plugin in general if plugin.name not in off]
    overridden = [name for name in named if name in reached]
    only_general = [name for name in reached if name not in named]
    assert order == [*overridden, *only_general, *(name for name in named if name not in overridden)]
    assert len(set(order)) == len(order)


@given(unique_lists, unique_lists)
def test_a_specific_weight_beats_a_general_one_and_zero_means_one(general: list[Plugin], own: list[Plugin]) -> None:
    plugins = Plugins(multi_point=plugin_set(general, []), score=plugin_set(own, []))
    weighed = weigh(plugins, expand(plugins, EVERYWHERE), EVERYWHERE)["score"]
    wanted = {plugin.name: plugin.weight or 1 for plugin in (*general, *own)}
    assert {plugin.name: plugin.weight for plugin in weighed} == wanted


DEFAULT_ORDER = {
    "pre_enqueue": "SchedulingGates DynamicResources DefaultPreemption",
    "queue_sort": "PrioritySort",
    "pre_filter": "NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding "
    "VolumeZone PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures",
    "filter": "NodeName NodeUnschedulable TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions "
    "NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources "
    "NodeDeclaredFeatures",
    "post_filter": "DynamicResources DefaultPreemption",
    "pre_score": "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity "
    "NodeResourcesBalancedAllocation",
    "score": "TaintToleration=3 NodeAffinity=2 NodeResourcesFit VolumeBinding PodTopologySpread=2 InterPodAffinity=2 "
    "DynamicResources=2 NodeResourcesBalancedAllocation ImageLocality",
    "reserve": "VolumeBinding DynamicResources",
    "permit": "",
    "pre_bind": "VolumeBinding DynamicResources",
    "bind": "DefaultBinder",
    "post_bind": "",
    "placement_generate": "",
    "placement_score": "NodeResourcesFit",
    "pod_group_post_filter": "",
}


@pytest.mark.parametrize("point", POINTS)
def test_the_default_order_at_each_point(point: str) -> None:
    plugins = default_plugins(Gates.defaults())
    found = weigh(plugins, expand(plugins, CATALOGUE), CATALOGUE)[point]
    entries = (entry.partition("=") for entry in DEFAULT_ORDER[point].split())
    assert found == tuple(Configured(name, int(weight or 1)) for name, _, weight in entries)


def test_before_1_37_cordons_come_before_names() -> None:
    names = default_plugins(Gates.defaults((1, 36))).multi_point.enabled_names
    assert names[2:5] == ["NodeUnschedulable", "NodeName", "TaintToleration"]
    assert default_plugins(Gates.defaults((1, 36))).pod_group_post_filter is None


def test_plugins_have_the_points_of_the_release() -> None:
    before, now = (at_release(IN_TREE_CATALOGUE, version) for version in ((1, 36), (1, 37)))
    changed = {name: now[name].points - before[name].points for name in now if now[name] != before[name]}
    assert changed == {
        "DefaultPreemption": {"pod_group_post_filter"},
        "DynamicResources": {"pod_group_post_filter"},
        "NodeName": {"pre_filter"},
        "NodeUnschedulable": {"pre_filter"},
        "TaintToleration": {"pre_filter"},
    }
    assert all(before[name].points <= now[name].points for name in now)


def test_gates_add_their_plugins_at_the_end() -> None:
    gates = Gates.parse("GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true", emulated=(1, 36))
    plugins = default_plugins(gates)
    assert plugins.multi_point.enabled_names[-4:] == [
        "NodeDeclaredFeatures",
        "GangScheduling",
        "TopologyPlacementGenerator",
        "PodGroupPodsCount",
    ]
    points = expand(plugins, CATALOGUE)
    assert points["permit"] == (Configured("GangScheduling"),)
    assert points["placement_generate"] == (Configured("TopologyPlacementGenerator"),)


def refused(plugins: Plugins) -> str:
    with pytest.raises(ConfigError) as caught:
        points = expand(plugins, CATALOGUE)
        weigh(plugins, points, CATALOGUE)
    return str(caught.value)


@pytest.mark.parametrize(("point", "kind"), POINT_TYPES.items(), ids=POINTS)
def test_an_unknown_plugin_is_refused_at_each_point(point: str, kind: str) -> None:
    plugins = Plugins(**{point: plugin_set([Plugin("Nobody")], [])})
    assert refused(plugins) == f'{kind} "Nobody" does not exist'


@pytest.mark.parametrize(("point", "kind"), POINT_TYPES.items(), ids=POINTS)
def test_a_plugin_is_refused_where_it_cannot_run(point: str, kind: str) -> None:
    stranger = "ImageLocality" if point != "score" else "NodeName"
    plugins = Plugins(**{point: plugin_set([Plugin(stranger)], [])})
    assert refused(plugins) == f'plugin "{stranger}" does not extend {kind} plugin'


def test_a_plugin_listed_twice_is_refused() -> None:
    twice = plugin_set([Plugin("NodeName"), Plugin("NodeName")], [])
    assert refused(Plugins(filter=twice)) == 'plugin "NodeName" already registered as "FilterPlugin"'
    assert refused(Plugins(multi_point=twice)) == 'plugin "NodeName" already registered as "FilterPlugin"'


def test_an_unknown_plugin_under_multi_point_is_met_at_the_first_point_that_is_open() -> None:
    nobody = plugin_set([Plugin("Nobody")], [])
    assert refused(Plugins(multi_point=nobody)) == 'PreFilterPlugin "Nobody" does not exist'
    closed = plugin_set([], [Plugin("*")])
    assert refused(Plugins(multi_point=nobody, pre_filter=closed)) == 'FilterPlugin "Nobody" does not exist'


def test_a_negative_weight_is_refused_unless_it_comes_last() -> None:
    defaults = default_plugins(Gates.defaults())
    first = merge(defaults, Plugins(score=plugin_set([Plugin("NodeResourcesFit", -1)], [])))
    assert refused(first) == "score plugins: total score of Score plugins could overflow"
    last = merge(defaults, Plugins(multi_point=plugin_set([Plugin("ImageLocality", -1)], [])))
    points = weigh(last, expand(last, CATALOGUE), CATALOGUE)
    assert points["score"][-1] == Configured("ImageLocality", -1)
