"""The plugins of a v1alpha1 file (1.17), beside predicates and priorities.

    predicates ran as       filter: NodeResourcesFit, NodeName, ...        `FILTER_PLUGINS`, `SCORE_PLUGINS`
    the file enables        filter: Mine
    final                   filter: NodeResourcesFit, NodeName, ..., Mine

`final` gives the plugins of every point, `check` the errors of the release, and `build` the plugin objects at today's points.
Kept quirk: `disabled` is read and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from kubesched.errors import ConfigError
from kubesched.kube.values import aggregate
from kubesched.scheduler.config import Args, Gates, Path, PluginConfig, PluginSet, Raw, Wire, decode, plain
from kubesched.scheduler.config import Plugin as Enabled
from kubesched.scheduler.framework import Handle, Plugin, points_of
from kubesched.scheduler.legacy.algorithms import FILTER_PLUGINS, SCORE_PLUGINS

FRAMEWORK = "error initializing the scheduling framework"

Build = Callable[[str], Plugin]
Placed = tuple[Plugin, int]


@dataclass(frozen=True, slots=True)
class Point:
    """An extension point of 1.17: its name today, and the name of its plugins in errors."""

    today: str
    kind: str


POINTS: Mapping[str, Point] = {
    "pre_filter": Point("pre_filter", "PreFilterPlugin"),
    "filter": Point("filter", "FilterPlugin"),
    "reserve": Point("reserve", "ReservePlugin"),
    "post_filter": Point("pre_score", "PostFilterPlugin"),  # it came after Filter, and before Score
    "score": Point("score", "ScorePlugin"),
    "pre_bind": Point("pre_bind", "PreBindPlugin"),
    "bind": Point("bind", "BindPlugin"),
    "post_bind": Point("post_bind", "PostBindPlugin"),
    "unreserve": Point("reserve", "UnreservePlugin"),  # today one plugin does both
    "permit": Point("permit", "PermitPlugin"),
    "queue_sort": Point("queue_sort", "QueueSortPlugin"),
}
"""In the order in which 1.17 built them, which decides which error is reported first."""


class OldPlugins(Wire, frozen=True, rename="camel"):
    """`plugins` of a v1alpha1 file."""

    go_type: ClassVar[str] = "v1alpha1.Plugins"

    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    unreserve: PluginSet = PluginSet()

    def at(self, point: str) -> tuple[Enabled, ...]:
        """Return the plugins that are enabled at a point."""
        found: PluginSet = getattr(self, point)
        return found.enabled or ()

    @property
    def names(self) -> frozenset[str]:
        """Return the names of all enabled plugins."""
        return frozenset(enabled.name for point in POINTS for enabled in self.at(point))


@dataclass(frozen=True, slots=True)
class Framework:
    """The final plugins by the points of 1.17, and their configuration."""

    plugins: Mapping[str, tuple[Enabled, ...]]
    config: tuple[PluginConfig, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return both as in a file."""
        shown = {
            camel(point): {"enabled": [_shown(enabled) for enabled in self.plugins[point]]}
            for point in POINTS
            if self.plugins.get(point)
        }
        return {"plugins": shown, "pluginConfig": [{"name": c.name, "args": plain(c.args.value)} for c in self.config]}


def final(
    predicates: Sequence[str],
    priorities: Mapping[str, int],
    brought: Sequence[PluginConfig],
    plugins: OldPlugins,
    config: Sequence[PluginConfig],
) -> Framework:
    """Return the plugins that predicates (in running order) and priorities ran as, followed by those of the file."""
    filters = [Enabled(name) for predicate in predicates for name in FILTER_PLUGINS.get(predicate, ())]
    scores = [Enabled(SCORE_PLUGINS[name], weight) for name, weight in priorities.items() if name in SCORE_PLUGINS]
    first = {"filter": filters, "score": scores}
    merged = {point: (*first.get(point, ()), *plugins.at(point)) for point in POINTS}
    return Framework(merged, (*brought, *config))


def check(framework: Framework, known: Mapping[str, frozenset[str]]) -> None:
    """Raise ConfigError for a plugin that does not exist, does not extend its point, or is there twice; `known` has today's
    points of every plugin."""
    for name, point in POINTS.items():
        seen: set[str] = set()
        for enabled in framework.plugins[name]:
            if enabled.name not in known:
                raise _broken(f'{point.kind} "{enabled.name}" does not exist')
            if point.today not in known[enabled.name]:
                raise _broken(f'plugin "{enabled.name}" does not extend {point.kind} plugin')
            if enabled.name in seen:
                raise _broken(f'plugin "{enabled.name}" already registered as "{point.kind}"')
            seen.add(enabled.name)
    if len(framework.plugins["queue_sort"]) > 1:
        raise _broken("only one queue sort plugin can be enabled")


def known_plugins(brought: Sequence[type[Plugin]]) -> dict[str, frozenset[str]]:
    """Return today's points of the plugins of 1.17 and of the user's own classes."""
    found: dict[str, set[str]] = {}
    for names in FILTER_PLUGINS.values():
        for name in names:
            found.setdefault(name, set()).add("filter")
    for name in SCORE_PLUGINS.values():
        found.setdefault(name, set()).add("score")
    for cls in brought:
        if cls.name in found:
            raise ConfigError("", f"a plugin named {cls.name} already exists")
        found[cls.name] = set(points_of(cls))
        if cls.implements("unreserve"):
            found[cls.name].add("reserve")
    return {name: frozenset(points) for name, points in found.items()}


def build(
    given: OldPlugins,
    framework: Framework,
    brought: Sequence[type[Plugin]],
    handle: Handle,
    filter_of: Build,
    scorer_of: Build,
) -> dict[str, list[Placed]]:
    """Return the plugins that a file enables, by today's points. A plugin at several points is one object. `filter_of` and
    `scorer_of` make the plugins of the release."""
    classes = {cls.name: cls for cls in brought}
    args = {config.name: config.args for config in framework.config}
    built: dict[str, Plugin] = {}
    placed: dict[str, list[Placed]] = {}
    for name, point in POINTS.items():
        for enabled in given.at(name):
            cls = classes.get(enabled.name)
            if cls is None:
                plugin = (filter_of if point.today == "filter" else scorer_of)(enabled.name)
            else:
                plugin = built.get(cls.name) or cls(_args(cls, args.get(cls.name)), handle)
                built[cls.name] = plugin
            here = placed.setdefault(point.today, [])
            if plugin not in [other for other, _ in here]:  # reserve and unreserve are one point today
                here.append((plugin, (enabled.weight or 1) if name == "score" else 0))
    return placed


def _args(cls: type[Plugin], given: Raw | None) -> Any:
    """Return the arguments of a plugin, typed if its class has `Args`; raise ConfigError for invalid ones."""
    if cls.Args is None or not issubclass(cls.Args, Args):
        return given
    gates, value = Gates.defaults(), given.value if given is not None else None
    try:
        decoded, strict = decode(cls.Args, value, with_type=True)
    except ConfigError as error:
        raise _broken(f'error initializing plugin "{cls.name}": {error}') from error
    args = decoded.defaulted(gates)
    problems: list[Any] = [*strict, *args.validate(Path(), gates)]
    if problems:
        raise _broken(f'error initializing plugin "{cls.name}": {aggregate(problems)}')
    return args


def _broken(text: str) -> ConfigError:
    return ConfigError("", f"{FRAMEWORK}: {text}")


def _shown(enabled: Enabled) -> dict[str, Any]:
    return {"name": enabled.name, "weight": enabled.weight} if enabled.weight else {"name": enabled.name}


def camel(name: str) -> str:
    """Return the wire name of an extension point: `pre_filter` becomes `preFilter`."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
