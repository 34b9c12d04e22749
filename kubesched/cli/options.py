"""Options that several commands take: which cluster, how it is to be decided, which scheduler to ask, how to print.

Options that belong together are fields of one value, each declared at its field. `@takes(cluster=ClusterOptions)` gives them to
a command and hands it one argument, `cluster`. An option that stands alone is a decorator and a plain argument.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

from kubesched.errors import ConfigError

if TYPE_CHECKING:
    from kubesched.kube.client import SchedulerAddress
    from kubesched.scheduler.config import Gates
    from kubesched.tools.plan.manifests import Manifest
    from kubesched.tools.snapshots.captured import Captured
    from kubesched.tools.snapshots.sources import Policy

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FILE_OR_STDIN = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
OUTPUTS = click.Choice(["table", "json", "yaml"])

LONGEST_SECONDS = 1e9


class Seconds(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """A length of time in seconds, given as a number or as Go writes it: 90, 90s, 10m, 1h30m. Never zero, unless `least` is."""

    name = "duration"

    def __init__(self, least: float | None = None, most: float | None = None) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from kubesched.scheduler.config import Duration

        try:
            found = float(value)
        except ValueError:
            try:
                found = Duration.parse(value).seconds
            except ConfigError:
                self.fail(f"{value!r} is no length of time: expected seconds, or text such as 90s, 10m or 1h30m", param, ctx)
        if math.isnan(found) or found < (self.least or 0) or (not found and self.least is None):
            self.fail(f"{value} is too short{f': at least {self.least:g} s' if self.least else ''}", param, ctx)
        if found > (self.most if self.most is not None else LONGEST_SECONDS):
            self.fail(f"{value} is too long{f': at most {self.most:g} s' if self.most else ''}", param, ctx)
        return found


class Options:
    """Options that belong together; each is a field of a subclass.

    It is not a dataclass: creating one costs half a millisecond at each start of the program.
    """

    declared: ClassVar[Mapping[str, Callable[[str], Decorator]]]
    """By the field's name, what declares the option under that name."""

    def __init_subclass__(cls) -> None:
        cls.declared = {name: vars(cls)[name] for name in cls.__annotations__}

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    @property
    def has_any(self) -> bool:
        """Return whether any of them was given."""
        return any(vars(self).values())


def option(*names: str, **settings: Any) -> Any:
    """Return a field with the value of an option of click, whose parameter has the field's name."""
    return lambda name: click.option(*names, name, **settings)


def with_default(name: str, type: Any, default: Any, help: str) -> Any:
    """Return a field with the value of an option whose default is shown in its help."""
    return option(name, type=type, default=default, show_default=True, help=help)


def argument(**settings: Any) -> Any:
    """Return a field with the value of an argument of click."""
    return lambda name: click.argument(name, **settings)


def shared(decorator: Decorator) -> Any:
    """Return a field with the value of one of the options below."""
    return lambda name: decorator


def takes(**values: type[Options]) -> Callable[[F], F]:
    """Give a command the options of a class, and hand it one value of that class instead of them."""

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def call(**given: Any) -> Any:
            for name, cls in values.items():
                given[name] = cls(**{field: given.pop(field) for field in cls.declared})
            return command(**given)

        # For the test that compares these with the command's parameters.
        call.__dict__["values"] = getattr(command, "values", {}) | values
        for field, declare in reversed([each for cls in values.values() for each in cls.declared.items()]):
            call = declare(field)(call)
        return call  # type: ignore[return-value]

    return decorate


config_option = click.option(
    "--config", "config_file", type=FILE, help="KubeSchedulerConfiguration to decide with, instead of the default one."
)


def _read_gates(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Replace @FILE by the gates that a running scheduler served."""
    if not any(text.startswith("@") for text in given):
        return given
    from kubesched.tools.snapshots.running_gates import gates_of_running

    texts = []
    for text in given:
        if text.startswith("@"):
            with click.open_file(text[1:], encoding="utf-8", errors="replace") as file:
                text = gates_of_running(file.read(), text[1:])
        texts.append(text)
    return tuple(texts)


gates_option = click.option(
    "--feature-gates",
    "feature_gates",
    multiple=True,
    metavar="A=true,B=false",
    callback=_read_gates,
    help="Feature gates to switch, as for `run`. @FILE or @- reads them from the metrics or /flagz of a running scheduler.",
)
plugin_option = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE.py:Class",
    help="Plugin class that the configuration names. May be given more than once.",
)
context_option = click.option("--context", default="", help="Context of the kubeconfig. Default: the current one.")
output_option = click.option("-o", "--output", type=OUTPUTS, default="table", show_default=True, help="Output format.")
output_without_default_option = click.option("-o", "--output", type=OUTPUTS, default="table", help="Output format.")
namespace_option = click.option(
    "-n", "--namespace", default="", help="Namespace of objects that name none. Default: that of the kubeconfig, else default."
)
node_groups_option = click.option(
    "--node-groups",
    "groups_file",
    type=FILE,
    help="Node groups that can grow (docs/how-to/node-groups.md), or Karpenter NodePools with instanceTypes.",
)


class PolicyOptions(Options):
    """How pods are decided."""

    config_file: Path | None = shared(config_option)
    feature_gates: tuple[str, ...] = shared(gates_option)
    plugins: tuple[str, ...] = shared(plugin_option)

    def read(self) -> Policy:
        """Read the configuration and the plugins; raise ConfigError if they cannot be used."""
        from kubesched.tools.snapshots.sources import Policy

        return Policy.read(self.config_file, self.feature_gates, self.plugins)

    def read_log(self, log: Path) -> tuple[list[bytes], Policy]:
        """Read an inbox log, and how its pods are decided: with the gates of its release."""
        from kubesched.tools.snapshots.sources import read_log

        return read_log(log, self.config_file, self.feature_gates, self.plugins)


class ClusterOptions(Options):
    """Which cluster is looked at."""

    snapshot_file: Path | None = option(
        "--snapshot",
        type=FILE_OR_STDIN,
        help="Read a file instead of a cluster: the output of `kubectl get nodes,pods -A -o json` or `kubesched snapshot`, "
        "an inbox log, or manifests. - is standard input.",
    )
    kubeconfig: str = option(
        "--kubeconfig",
        type=click.Path(dir_okay=False),
        default="",
        help="Kubeconfig of the cluster to read. Default: the one that kubectl uses.",
    )
    context: str = shared(context_option)

    def read(self, gates: Gates) -> Captured:
        """Read the cluster."""
        from kubesched.tools.snapshots.sources import read_cluster

        return read_cluster(self.snapshot_file, self.kubeconfig, self.context, gates)

    def read_for_dry_run(self, policy: PolicyOptions, manifests: Sequence[Manifest] = ()) -> tuple[Captured, Policy]:
        """Read the cluster, and how its pods are decided: with the gates of its release, and without extenders. The manifests
        are those that will be applied to it."""
        from kubesched.tools.snapshots.sources import open_cluster

        decided_by = policy.config_file, policy.feature_gates, policy.plugins
        return open_cluster(self.snapshot_file, self.kubeconfig, self.context, *decided_by, manifests)

    def namespace(self, asked: str) -> str:
        """Return the namespace for what names none."""
        from kubesched.tools.snapshots.sources import namespace_of

        return namespace_of(asked, self.snapshot_file, self.kubeconfig, self.context)


class ManifestOptions(Options):
    """Which manifests are looked at."""

    files: tuple[str, ...] = option(
        "-f",
        "--filename",
        multiple=True,
        metavar="FILE",
        help="File or folder of manifests; - is standard input. May be given more than once.",
    )
    kustomization: str | None = option(
        "-k",
        "--kustomize",
        type=click.Path(exists=True, file_okay=False),
        help="Folder with a kustomization.yaml; kubectl builds it.",
    )
    recursive: bool = option("-R", "--recursive", is_flag=True, help="Read folders inside folders too.")
    more_files: tuple[str, ...] = argument(nargs=-1, metavar="[FILE]...")

    def read(self) -> list[Manifest]:
        """Read the manifests; raise SchedulerError if there is no object."""
        from kubesched.tools.snapshots.sources import read_given

        return read_given(self.files, self.more_files, self.kustomization, self.recursive)


class ServerOptions(Options):
    """Which running scheduler is asked."""

    server: str = option(
        "--server",
        default="",
        metavar="URL",
        help="Ask a running kubesched at its secure port (https://HOST:10259), or a demo at its page.",
    )
    token: str = option("--token", default="", help="With --server: bearer token for its secure port.")
    ca_file: str | None = option(
        "--certificate-authority",
        type=click.Path(exists=True, dir_okay=False),
        help="With --server: file of certificate authorities to trust.",
    )
    is_trusting: bool = option("--insecure-skip-tls-verify", is_flag=True, help="With --server: do not verify its certificate.")

    def address(self, *, asks_else: bool = False) -> SchedulerAddress | None:
        """Return the scheduler to ask; None if none is to be asked. One that only a default names is not asked what it cannot
        answer (`asks_else`)."""
        from kubesched.kube.client import SchedulerAddress

        source = click.get_current_context().get_parameter_source("server")
        if asks_else and source is click.core.ParameterSource.DEFAULT_MAP:
            return None
        if self.server:
            return SchedulerAddress(self.server, self.token, self.ca_file or "", not self.is_trusting)
        if self.has_any:
            raise click.UsageError("--token, --certificate-authority and --insecure-skip-tls-verify go with --server")
        return None
