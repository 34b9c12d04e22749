"""`kubesched shadow`: beside a live scheduler, without any write: do we agree, and if not, why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kubesched.cli.layout import print_table, say
from kubesched.cli.options import (
    FOLDER,
    Options,
    PolicyOptions,
    Seconds,
    context_option,
    option,
    output_option,
    takes,
    with_default,
)
from kubesched.cli.printing import fewer, print_document, warn, warned
from kubesched.errors import SchedulerError

_NODE_WIDTH = 24
_MEANINGS = {
    "same": "our node",
    "tie": "another of our best nodes",
    "sampled": "the best of a part of the nodes (percentageOfNodesToScore)",
    "worse": "a node with a lower score",
    "infeasible": "a node that we refuse",
    "failed": "our own attempt broke",
}
_NOTES = {"races": "as races", "promised": "by what the pods had been promised"}


class ConfigzOptions(Options):
    """Where the live scheduler's configuration is taken from, if not from --config."""

    configz: str = option(
        "--configz",
        default="",
        metavar="URL|FILE",
        help="Take the live scheduler's configuration from its secure port (https://HOST:10259), or from a file with its "
        "/configz.",
    )
    token: str = option("--token", default="", help="With --configz URL: bearer token for its secure port.")
    ca_file: str | None = option(
        "--certificate-authority",
        type=click.Path(exists=True, dir_okay=False),
        help="With --configz URL: file of certificate authorities to trust.",
    )
    is_trusting: bool = option(
        "--insecure-skip-tls-verify", is_flag=True, help="With --configz URL: do not verify its certificate."
    )

    def read(self) -> str:
        """Return the live scheduler's configuration as a document; empty if it is not taken from there."""
        import asyncio

        from kubesched.kube.client import SchedulerAddress, ask_for_configuration
        from kubesched.scheduler.config import from_configz

        is_asked = self.configz.startswith(("http://", "https://"))
        if (self.token or self.ca_file or self.is_trusting) and not is_asked:
            raise click.UsageError("--token, --certificate-authority and --insecure-skip-tls-verify go with --configz URL")
        if not self.configz:
            return ""
        if is_asked:
            address = SchedulerAddress(self.configz, self.token, self.ca_file or "", not self.is_trusting, "--configz")
            text = asyncio.run(ask_for_configuration(address))
        else:
            try:
                text = Path(self.configz).read_text(encoding="utf-8", errors="replace")
            except OSError as error:
                raise SchedulerError(f"{self.configz}: {error.strerror or error}") from error
        try:
            document, n_extenders = from_configz(text)
        except SchedulerError as error:
            raise SchedulerError(f"{self.configz}: {error}") from error
        if n_extenders:
            warn("extenders are not asked")
        return document


class ShadowOptions(Options):
    """What is judged and how, when to stop, and where differences are kept and shown."""

    window_seconds: float = with_default(
        "--window", Seconds(0, 60), "2s", "How far before and after a placement to look for a state that explains it."
    )
    control: float = option(
        "--control",
        type=click.FloatRange(0, 1),
        default=0.0,
        show_default=True,
        metavar="SHARE",
        help="For this share of the placements also judge a random node, to see how many of those pass as races.",
    )
    folder: Path | None = option(
        "--snapshots", type=FOLDER, help="Folder for a snapshot of each difference; `replay` repeats its decision."
    )
    max_snapshots: int = with_default("--max-snapshots", click.IntRange(0), 100, "With --snapshots: how many at most.")
    most_pods: int | None = option("--pods", type=click.IntRange(1), help="Stop after this many placements.")
    seconds: float | None = option("--duration", type=Seconds(), help="Stop after this time: 90s, 10m.")
    shows_all: bool = option("--all", is_flag=True, help="Print a line for every placement, not only for differences.")
    seed: int = with_default("--seed", int, 0, "Seed of the choice among equally good nodes.")
    port: int | None = option(
        "--port", type=click.IntRange(0, 65535), help="Serve /metrics, /healthz, /readyz and /shadow.json here; 0 for any port."
    )
    host: str = option("--bind-address", default="127.0.0.1", show_default=True, help="With --port: the address to serve on.")
    has_exit_code: bool = option("--exit-code", is_flag=True, help="Exit with 1 if there was a difference.")


@click.command(
    "shadow",
    epilog="Example:  kubesched shadow --configz https://127.0.0.1:10259 --token $TOKEN --snapshots differences --pods 1000",
)
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False),
    default="",
    help="Kubeconfig of the cluster. Default: the one that kubectl uses.",
)
@context_option
@takes(policy=PolicyOptions, live=ConfigzOptions, options=ShadowOptions)
@output_option
def command(
    kubeconfig: str, context: str, policy: PolicyOptions, live: ConfigzOptions, options: ShadowOptions, output: str
) -> None:
    """Follow a cluster and its live scheduler, decide each pod that it places, on the state that it saw, and print differences.
    Nothing is written: rights to list and watch are enough (docs/how-to/shadow.md).

    A placement is one of: same (our node); tie (another of our best nodes); sampled (the best of the nodes that
    percentageOfNodesToScore lets a scheduler look at); worse (a lower score, by how much and by which plugin); infeasible (a
    node that a plugin of ours refuses). Events that overtake each other can explain a difference: that is a race.

    Stops at Ctrl-C and prints a summary.
    """
    import asyncio

    from kubesched.kube.client import kubectl_credentials
    from kubesched.tools.shadow.judging import Settings
    from kubesched.tools.shadow.run import Run
    from kubesched.tools.shadow.snapshots import Snapshots
    from kubesched.tools.snapshots.sources import Policy, live_release

    if live.configz and policy.config_file is not None:
        raise click.UsageError("--config and --configz both say how the live scheduler decides: give one")
    source = live.read() or policy.config_file
    try:
        chosen = Policy.for_dry_run(source, policy.feature_gates, policy.plugins, live_release(kubeconfig, context))
    except SchedulerError as error:
        raise error if not live.configz else SchedulerError(f"{live.configz}: {error}") from error
    has_title = False

    def show(told: dict[str, Any], is_agreement: bool) -> None:
        """Print a line at once; columns are as wide as most names are, since nobody knows what comes."""
        nonlocal has_title
        if output != "table" or (is_agreement and not options.shows_all):
            return
        if not has_title:
            has_title = True
            click.echo(_line("AGREEMENT", "THEIRS", "OURS", "POD", "WHY"))
        name = f"{told['agreement']}{' (' + told['note'] + ')' if told['note'] else ''}"
        click.echo(_line(name, told["chosen"], told["ours"] or "-", told["pod"], why(told)))

    run = Run(
        kubectl_credentials(kubeconfig, context),
        Settings(chosen.configuration, chosen.gates, chosen.registry, options.seed, options.window_seconds, options.control),
        Snapshots(options.folder, options.max_snapshots) if options.folder is not None else None,
        options.most_pods,
        options.seconds,
        None if options.port is None else (options.host, options.port),
        lambda text: click.echo(text, err=True),
        show,
    )
    with warned():
        asyncio.run(run.run())
    document = run.document()
    if output == "table":
        _print_summary(document, options.folder)
    else:
        print_document(document, output)
    if options.has_exit_code and run.report.n_differences:
        sys.exit(1)


def _line(agreement: str, theirs: str, ours: str, pod: str, text: str) -> str:
    return f"{agreement:16}  {theirs:{_NODE_WIDTH}}  {ours:{_NODE_WIDTH}}  {pod:{_NODE_WIDTH}}  {text}".rstrip()


def why(told: dict[str, Any]) -> str:
    """Return in words what makes a difference, or what explains it."""
    if "stateSeen" in told:
        return f"decided {told['stateSeen']}"
    if "behind" in told:
        parts = ", ".join(f"{plugin} {points:+d}" for plugin, points in told["byPlugin"].items())
        return f"behind by {told['behind']}: {parts}"
    if "reasons" in told:
        by = f"{told['refusedBy']}: " if told["refusedBy"] else ""
        return by + "; ".join(told["reasons"])
    return ""


def _print_summary(document: dict[str, Any], folder: Path | None) -> None:
    n, found = document["judged"], document["agreement"]
    if not n:
        say("No pod was placed by the schedulers that are judged.")
    else:
        rows = [[kind, str(count), f"{100 * count / n:.2f} %", _MEANINGS[kind]] for kind, count in found.items() if count]
        if document["differences"]:
            say()
        print_table(["AGREEMENT", "PODS", "", ""], rows, right=(1, 2))
        taken = ", ".join(f"{document[name]} {words}" for name, words in _NOTES.items() if document[name])
        also = f" ({taken})" if taken else ""
        say(f"{n} placements in {document['seconds']:g} s, {document['explainedPercent']:g} % explained{also}.")
    if document["missed"]:
        say(f"{document['missed']} more could not be judged: we were cut off, or too far behind.")
    if (drawn := document["control"])["drawn"]:
        wrong = drawn["foundOut"] + drawn["passedAsRaces"]
        say(
            f"Control: {drawn['drawn']} random nodes, {drawn['level']} of them as good as ours; of the other {wrong} "
            f"{drawn['foundOut']} were found out and {drawn['passedAsRaces']} would have passed as races."
        )
    if document["otherSchedulers"]:
        say(f"Not judged, as no profile has their name: {fewer(document['otherSchedulers'], 5)}.")
    sent = ", ".join(f"{count} {verb}" for verb, count in sorted(document["requests"].items()))
    say(f"Requests sent, apart from watches: {sent}.")
    n_differences = n - sum(found[kind] for kind in ("same", "tie", "sampled"))
    if n_differences and folder is None:
        say("With --snapshots FOLDER each difference is kept as a file that `kubesched replay` decides again.")
    elif n_differences:
        say(f"Snapshots are in {folder}: `kubesched replay FILE` decides one again, `why POD --snapshot FILE` explains it.")
