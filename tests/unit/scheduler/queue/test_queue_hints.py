"""Which wake-ups a profile's plugins register, and how events find them."""

import pytest
from queue_fakes import NODE_TAINTS, World

from kubesched.errors import ConfigError
from kubesched.scheduler.framework import Plugin, Profile
from kubesched.scheduler.framework.wakeups import ADD, NODE, POD, Action, ClusterEvent, on
from kubesched.scheduler.queue import QueueOptions
from kubesched.scheduler.queue.hints import EXTENDER, ProfileHints


def registered(*plugins, **options):
    profile = Profile("p", {"filter": [(plugin, 0) for plugin in plugins]})
    return ProfileHints(profile, QueueOptions(**options))


class Filtering(Plugin):
    def filter_node(self, pod, node, state):
        return None

    def look(self, pod, old, new):
        return True


class WaitsForNodes(Filtering):
    wakes_on = (on(NODE, ADD | Action.NODE_LABELS, "look"),)


class WaitsForTaints(Filtering):
    wakes_on = (on(NODE, ADD, "look"), on(NODE, Action.NODE_TAINTS, "look"))


class WaitsForPods(Filtering):
    wakes_on = (on(POD, Action.UPDATE, "look"),)


class WaitsForNothing(Filtering):
    wakes_on = ()


@pytest.mark.parametrize(("cls", "unasked"), [(WaitsForNodes, True), (WaitsForTaints, False), (WaitsForPods, None)])
def test_before_1_37_who_waits_for_nodes_but_not_for_taints_is_woken_by_taints_unasked(cls, unasked):
    found = registered(cls(None, World().handle), taints_announce_nodes=True).matching(NODE_TAINTS)
    assert [r.hint is None for r in found] == ([] if unasked is None else [unasked])


@pytest.mark.parametrize(("cls", "n"), [(WaitsForNodes, 0), (WaitsForTaints, 1), (WaitsForPods, 0)])
def test_taints_wake_who_waits_for_them(cls, n):
    assert len(registered(cls(None, World().handle)).matching(NODE_TAINTS)) == n


def test_methods_are_those_of_the_plugin():
    plugin = WaitsForNodes(None, World().handle)
    (found,) = registered(plugin).matching(ClusterEvent(NODE, int(ADD)))
    assert (found.plugin, found.hint) == ("WaitsForNodes", plugin.look)


def test_a_plugin_that_waits_for_nothing_is_woken_by_nothing():
    assert registered(WaitsForNothing(None, World().handle)).registered == ()


def test_a_general_update_does_not_match_who_waits_for_one_kind_of_update():
    hints = registered(WaitsForNodes(None, World().handle))
    assert hints.matching(ClusterEvent(NODE, int(Action.UPDATE))) == ()
    assert len(hints.matching(ClusterEvent(NODE, int(Action.NODE_LABELS)))) == 1


def test_who_waits_for_pods_is_told_of_pods_with_and_without_a_node():
    hints = registered(WaitsForPods(None, World().handle))
    for resource in ("AssignedPod", "UnschedulablePod"):
        assert len(hints.matching(ClusterEvent(resource, int(Action.POD_LABELS)))) == 1


def test_extenders_are_a_plugin_that_waits_for_everything():
    plugin = WaitsForNothing(None, World().handle)
    found = registered(plugin, has_extenders=True).matching(ClusterEvent("PersistentVolume", 2))
    assert [(r.plugin, r.hint) for r in found] == [(EXTENDER, None)]


def test_a_hint_that_is_no_method_is_refused_by_name():
    class Wrong(Filtering):
        def wakeups(self):
            return (on(NODE, ADD, "missing"),)

    with pytest.raises(ConfigError, match=r"plugin Wrong: wakeups\(\) names the hint missing, which is not a method"):
        registered(Wrong(None, World().handle))
