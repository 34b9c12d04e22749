"""Which taints to tolerate: the advice of TaintToleration."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from kubesched.kube.api import HARD_EFFECTS, Taint, Toleration, codec
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.framework import Advice, Refused

_BY_NODE_LIFECYCLE = "node.kubernetes.io/"


def advise_toleration(refused: Refused) -> list[Advice]:
    """Return which taints to tolerate; nodes that have fewer of them are opened by the same tolerations."""
    nodes, pod = refused.nodes, refused.pod.pod
    lacking = {
        code: frozenset(map(_bare, untolerated(refused.pod, nodes.taint_sets[code])))
        for code in np.unique(nodes.taint_set[refused.alone]).tolist()
    }
    found = []
    for wanted in dict.fromkeys(lacking.values()):
        opened = refused.alone & np.isin(nodes.taint_set, [code for code, taints in lacking.items() if taints <= wanted])
        taints = sorted(wanted, key=lambda taint: (taint.key, taint.value, taint.effect))
        more = tuple(map(_toleration, taints))
        changed = replace(pod, spec=replace(pod.spec, tolerations=(*pod.spec.tolerations, *more)))
        if refused.decide is not None and pod.spec.topology_spread_constraints:
            # A constraint may count over the tolerated nodes only, and then say otherwise about all of them.
            opened = refused.decide(changed)
        if not opened.any():
            continue
        listed = " and ".join(map(taint_text, taints))
        if any(taint.key.startswith(_BY_NODE_LIFECYCLE) for taint in taints):
            # Put there because something is wrong with the node; to tolerate that is no advice.
            change: dict[str, object] = {"taints": [taint_text(taint) for taint in taints]}
            found.append(refused.advise("taint", f"once the taint {listed} is gone,", opened, change=change))
        else:
            change = {"tolerations": [codec.to_dict(each) for each in more]}
            found.append(refused.advise("tolerate", f"tolerating {listed},", opened, change=change, changed=changed))
    return found


def _toleration(taint: Taint) -> Toleration:
    return Toleration(key=taint.key, operator="Equal" if taint.value else "Exists", value=taint.value, effect=taint.effect)


def untolerated(pod: PodView, taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """Return the hard taints that a pod does not tolerate."""
    return tuple(taint for taint in taints if taint.effect in HARD_EFFECTS and not pod.tolerates(taint))


def taint_text(taint: Taint) -> str:
    """Return a taint as kubectl writes it."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _bare(taint: Taint) -> Taint:
    return replace(taint, time_added=None)
