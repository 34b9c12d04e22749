"""Plugin classes by name, verified when they are registered.

In: plugin classes, ours and those of other authors. Out: the class of a name. A class with an unknown method or other arguments
than the contract has is refused here, with the method's name, and not in the middle of an attempt.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from kubesched.errors import ConfigError
from kubesched.kube.api import TopLevel
from kubesched.scheduler.config import Args
from kubesched.scheduler.framework.inputs import Input
from kubesched.scheduler.framework.plugin import POINTS, Plugin

_GONE = ("filter_scope", "score_scope", "is_impersonal", "reads", "remembers")
_CONTRACT = {name for name, value in vars(Plugin).items() if inspect.isfunction(value) and not name.startswith("_")}


class Registry:
    """Plugin classes by name."""

    def __init__(self, *classes: type[Plugin]) -> None:
        self._classes: dict[str, type[Plugin]] = {}
        for cls in classes:
            self.register(cls)

    def register(self, cls: type[Plugin]) -> None:
        """Add a plugin class; raise if its name is taken or it does not keep the contract."""
        if cls.name in self._classes:
            raise ConfigError("", f"a plugin named {cls.name} already exists")
        verify(cls)
        self._classes[cls.name] = cls

    def find(self, name: str) -> type[Plugin] | None:
        """Return the class of that name, or None."""
        return self._classes.get(name)

    def __iter__(self) -> Iterator[type[Plugin]]:
        return iter(self._classes.values())

    def copy(self) -> Registry:
        """Return a registry that can be added to without changing this one."""
        copied = Registry()
        copied._classes = dict(self._classes)  # verified when they came in
        return copied


def points_of(cls: type[Plugin]) -> tuple[str, ...]:
    """Return the extension points that a plugin class implements, in the contract's order."""
    return tuple(point for point, methods in POINTS.items() if any(cls.implements(method) for method in methods))


def point_name(point: str) -> str:
    """Return an extension point as kube-scheduler calls it: PreFilter for pre_filter."""
    return "".join(word.capitalize() for word in point.split("_"))


def purpose_of(cls: type[Plugin]) -> str:
    """Return what a plugin does: the first sentence of its module's story, without the plugin's name."""
    story = inspect.getdoc(inspect.getmodule(cls)) or inspect.getdoc(cls) or ""
    return story.split("\n\n")[0].replace("\n", " ").removeprefix(f"{cls.name}: ")


def verify(cls: type[Plugin]) -> None:
    """Raise a one-line error if a class is not a plugin that the framework can call."""
    if not (isinstance(cls, type) and issubclass(cls, Plugin)):
        raise ConfigError("", f"{cls!r} is not a subclass of kubesched.Plugin")
    for name in sorted(_CONTRACT):
        # Arguments are compared by position, so a plugin may rename them. The same names in another order are an error all the
        # same: such a plugin would run, and mix up pod and state.
        own, contract = getattr(cls, name), getattr(Plugin, name)
        if own is contract:
            continue
        if not callable(own):
            raise ConfigError("", f"plugin {cls.name}: {name} is not a method")
        if inspect.iscoroutinefunction(own) != inspect.iscoroutinefunction(contract):
            wanted = "async def" if inspect.iscoroutinefunction(contract) else "def"
            raise ConfigError("", f"plugin {cls.name}: {name} must be written with {wanted}")
        wanted_args, found_args = _positional(contract), _positional(own)
        is_mixed_up = wanted_args != found_args and set(wanted_args) == set(found_args)
        if len(wanted_args) != len(found_args) or is_mixed_up:
            raise ConfigError(
                "",
                f"plugin {cls.name}: {name}({', '.join(found_args)}) does not take the arguments "
                f"of the contract, {name}({', '.join(wanted_args)})",
            )
    try:
        # Every plugin is made with (args, handle). Checked now, because profiles are built in the middle of a reload.
        inspect.signature(cls).bind("args", "handle")
    except TypeError as error:
        found = ", ".join(["self", *_positional(cls)])
        raise ConfigError("", f"plugin {cls.name}: __init__({found}) is not called with args and handle: {error}") from error
    _verify_args(cls)
    # Attributes of earlier versions of the contract. Ignored silently, a plugin would be cached by rules that its author did
    # not mean.
    for name in _GONE:
        if hasattr(cls, name):
            raise ConfigError("", f"plugin {cls.name}: {name} is gone, depends_on says what answers are made of")
    for made_of in cls.depends_on or ():
        if not (isinstance(made_of, Input) or (isinstance(made_of, type) and issubclass(made_of, TopLevel))):
            raise ConfigError(
                "", f"plugin {cls.name}: depends_on holds {made_of!r}, neither an Input nor a kind of API objects"
            )
    for wakeup in cls.wakes_on or ():
        # A hint is named by its method. A typing error would otherwise show when the first event comes.
        if wakeup.hint is not None and not callable(getattr(cls, wakeup.hint, None)):
            raise ConfigError("", f"plugin {cls.name}: wakes_on names the hint {wakeup.hint}, which is not a method")
    if not points_of(cls):
        raise ConfigError("", f"plugin {cls.name} implements no extension point")


def _verify_args(cls: type[Plugin]) -> None:
    if cls.Args is None:
        return
    if not (isinstance(cls.Args, type) and issubclass(cls.Args, Args)):
        raise ConfigError("", f"plugin {cls.name}: Args is not a subclass of kubesched.scheduler.config.Args")
    try:
        cls.Args()
    except TypeError as error:
        raise ConfigError("", f"plugin {cls.name}: Args must have a default for every field: {error}") from error


def _positional(function: object) -> list[str]:
    parameters = list(inspect.signature(function).parameters.values())  # type: ignore[arg-type]
    return [p.name for p in parameters if p.name != "self" and p.default is inspect.Parameter.empty]
