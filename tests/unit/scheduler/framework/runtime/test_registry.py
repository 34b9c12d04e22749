"""Registration: a class that the framework could not call is refused, and told why."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched import Simulation
from kubesched.errors import ConfigError
from kubesched.scheduler.config import Args
from kubesched.scheduler.framework import CycleState, NodeView, Plugin, PodView, Registry
from kubesched.scheduler.framework.runtime.registry import points_of, verify
from kubesched.scheduler.framework.wakeups import NODE, Action, on
from kubesched.testing import node, pod


class Fine(Plugin):
    def filter_node(self, pod: Any, node: Any, state: Any) -> Any:
        return None

    def score(self, pod: Any, nodes: Any, state: Any) -> Any:
        return None


class Pointless(Plugin):
    pass


class TooFew(Plugin):
    def filter(self, pod: Any, nodes: Any) -> Any:  # type: ignore[override]
        return None


class NotAsync(Plugin):
    def bind(self, pod: Any, node_name: Any, state: Any) -> Any:
        return None


class TooAsync(Plugin):
    async def reserve(self, pod: Any, node_name: Any, state: Any) -> Any:
        return None


class NotAMethod(Plugin):
    filter = "yes"  # type: ignore[assignment]


class Hintless(Plugin):
    wakes_on = (on(NODE, Action.ADD, "no_such_hint"),)

    def filter_node(self, pod: Any, node: Any, state: Any) -> Any:
        return None


class OldDeclaration(Plugin):
    filter_scope = 2

    def filter_node(self, pod: Any, node: Any, state: Any) -> Any:
        return None


class OddDeclaration(Plugin):
    depends_on = ("node",)  # type: ignore[assignment]

    def filter_node(self, pod: Any, node: Any, state: Any) -> Any:
        return None


class BareArgs(Plugin):
    class Args:
        pass

    def filter_node(self, pod: Any, node: Any, state: Any) -> Any:
        return None


class SizeArgs(Args, frozen=True):
    size: int


class NeedyArgs(Plugin):
    Args = SizeArgs

    def filter_node(self, pod: Any, node: Any, state: Any) -> Any:
        return None


REFUSED = [
    ("no point at all", Pointless, "plugin Pointless implements no extension point"),
    (
        "wrong arguments",
        TooFew,
        "plugin TooFew: filter(pod, nodes) does not take the arguments of the contract, filter(pod, nodes, state)",
    ),
    ("a plain function where one that waits is wanted", NotAsync, "plugin NotAsync: bind must be written with async def"),
    ("one that waits where a plain function is wanted", TooAsync, "plugin TooAsync: reserve must be written with def"),
    ("a value where a method is wanted", NotAMethod, "plugin NotAMethod: filter is not a method"),
    ("arguments of another kind", BareArgs, "plugin BareArgs: Args is not a subclass of kubesched.scheduler.config.Args"),
    (
        "arguments that a configuration must name",
        NeedyArgs,
        "plugin NeedyArgs: Args must have a default for every field: Missing required argument 'size'",
    ),
    ("a hint that is not there", Hintless, "plugin Hintless: wakes_on names the hint no_such_hint, which is not a method"),
    (
        "a declaration of older releases",
        OldDeclaration,
        "plugin OldDeclaration: filter_scope is gone, depends_on says what answers are made of",
    ),
    (
        "a declaration of nothing that we know",
        OddDeclaration,
        "plugin OddDeclaration: depends_on holds 'node', neither an Input nor a kind of API objects",
    ),
    ("no plugin", int, "<class 'int'> is not a subclass of kubesched.Plugin"),
]


@pytest.mark.parametrize(("cls", "text"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_a_class_that_breaks_the_contract_is_refused_with_the_method_named(cls: Any, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        verify(cls)
    assert str(refused.value) == text


def test_a_name_is_taken_once() -> None:
    registry = Registry(Fine)
    with pytest.raises(ConfigError, match="a plugin named Fine already exists"):
        registry.register(Fine)


def test_a_class_is_found_under_its_name_and_a_copy_is_apart() -> None:
    registry = Registry(Fine)
    copy = registry.copy()
    copy.register(type("Other", (Fine,), {}))
    assert registry.find("Fine") is Fine and registry.find("Other") is None
    assert [cls.name for cls in copy] == ["Fine", "Other"]


def test_points_are_read_off_the_methods() -> None:
    assert points_of(Fine) == ("filter", "score")
    assert points_of(Pointless) == ()


def test_a_name_can_be_given() -> None:
    assert type("Local", (Fine,), {"name": "example.com/Nice"}).name == "example.com/Nice"
    assert Fine.name == "Fine"


class ToldArgs(Args, frozen=True, rename="camel"):
    most: int = 3


class Told(Plugin):
    Args = ToldArgs

    def filter_node(self, pod: PodView, node: NodeView, state: CycleState) -> str | None:
        return None if self.args.most == 3 else "was told otherwise"


def test_a_plugin_that_declares_arguments_gets_them_also_where_nothing_is_configured() -> None:
    sim = Simulation([node("a")], plugins=[Told])
    sim.submit(pod("p"))
    assert sim.step().node == "a"
