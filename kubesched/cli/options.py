"""Options that several commands take: which cluster, how it is to be decided, which scheduler to ask, how to print.

Options that belong together are fields of one value, each declared at its field. `@takes(cluster=ClusterOptions)` gives them to
a command and hands it one argument, `cluster`. An option that stands alone is a decorator and a plain argument.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

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


class Options:
    """Options that belong together, each a field of a subclass. A dataclass would be made anew at every start of the program,
    at the cost of half a millisecond."""

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
        def call(**said: Any) -> Any:
            for name, cls in values.items():
                said[name] = cls(**{field: said.pop(field) for field in cls.declared})
            return command(**said)

        # For the test that compares these with the command's parameters.
        call.__dict__["values"] = getattr(command, "values", {}) | values
        for field, declare in reversed([each for cls in values.values() for each in cls.declared.items()]):
            call = declare(field)(call)
        return call  # type: ignore[return-value]

    return decorate


config_option = click.option(
    "--config", "config_file", type=FILE, help="Decide with this KubeSchedulerConfiguration instead of the default one."
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
    help="Gates to switch, as for `run`; @FILE or @- reads them from the metrics or /flagz of a running scheduler.",
)
plugin_option = click.option(
    "--plugin", "plugins", multiple=True, metavar="FILE.py:Class", help="A plugin that --config names."
)
context_option = click.option("--context", default="", help="The context of the kubeconfig; its current one if not given.")
output_option = click.option("-o", "--output", type=OUTPUTS, default="table", show_default=True, help="How to print.")
output_without_default_option = click.option("-o", "--output", type=OUTPUTS, default="table", help="How to print.")
namespace_option = click.option(
    "-n", "--namespace", default="", help="For what names none; the kubeconfig's namespace, or default, if not given."
)
node_groups_option = click.option(
    "--node-groups",
    "groups_file",
    type=FILE,
    help="Groups of nodes that may grow (docs/how-to/node-groups.md), or Karpenter's NodePools with instanceTypes.",
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
        help="Read a file instead of a cluster, or - for the standard input: what `kubectl get nodes,pods -A -o json` or "
        "`kubesched snapshot` wrote, an inbox log, or manifests.",
    )
    kubeconfig: str = option(
        "--kubeconfig",
        type=click.Path(dir_okay=False),
        default="",
        help="The cluster to read; what kubectl would take if not given.",
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
        help="A file of manifests, a folder of such files, or - for the standard input. More may follow.",
    )
    kustomization: str | None = option(
        "-k",
        "--kustomize",
        type=click.Path(exists=True, file_okay=False),
        help="A folder with a kustomization.yaml, to be built by kubectl.",
    )
    recursive: bool = option("-R", "--recursive", is_flag=True, help="Look into the folders of folders too.")
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
        help="Ask a running kubesched: its secure port (https://HOST:10259) or a demo's page.",
    )
    token: str = option("--token", default="", help="With --server: who we are, for its secure port.")
    ca_file: str | None = option(
        "--certificate-authority",
        type=click.Path(exists=True, dir_okay=False),
        help="With --server: whose certificates to trust.",
    )
    is_trusting: bool = option("--insecure-skip-tls-verify", is_flag=True, help="With --server: trust any certificate.")

    def address(self) -> SchedulerAddress | None:
        """Return the scheduler to ask; None if none is to be asked."""
        from kubesched.kube.client import SchedulerAddress

        if self.server:
            return SchedulerAddress(self.server, self.token, self.ca_file or "", not self.is_trusting)
        if self.has_any:
            raise click.UsageError("--token, --certificate-authority and --insecure-skip-tls-verify go with --server")
        return None
