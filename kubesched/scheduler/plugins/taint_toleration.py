"""TaintToleration: keep pods off nodes whose hard taints they do not tolerate, and prefer nodes with few soft ones.

Filter refuses a node with a NoSchedule or NoExecute taint that the pod does not tolerate. Score counts PreferNoSchedule taints,
and NormalizeScore turns the count round: no such taint gives 100, the node with most of them 0.

Nodes have few different lists of taints (`nodes.taint_sets`). Each list is judged once, and `nodes.taint_set`, a column with
the number of each node's list, spreads the answers over the nodes.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from kubesched.kube.api import (
    HARD_EFFECTS,
    PREFER_NO_SCHEDULE,
    Node,
    Pod,
    Taint,
    Toleration,
    codec,
    find_untolerated,
    is_tolerated,
)
from kubesched.scheduler.cluster import Bools, Ints
from kubesched.scheduler.framework import (
    ADMITTED_LATER,
    NODE,
    POD,
    Action,
    Advice,
    CycleState,
    Input,
    Plugin,
    PodView,
    Reason,
    Refused,
    Rejections,
    Snapshot,
    Status,
    on,
)
from kubesched.scheduler.plugins.shared.normalizing import scale_to_best

UNTOLERATED = Reason("node(s) had untolerated taint(s)", resolvable=False)
_BY_NODE_LIFECYCLE = "node.kubernetes.io/"
_MAY_HELP = Action.ADD | Action.NODE_TAINTS


class TaintToleration(Plugin):
    wakes_on = (
        on(NODE, _MAY_HELP, "is_tolerated_now", by_template=True, without_hints=Action.ADD | ADMITTED_LATER),
        on(POD, Action.POD_TOLERATIONS, "is_itself", by_template=True, without_hints=0),
    )
    needs = (("score", "pre_score", 'failed to read "PreScoreTaintToleration" from cycleState: not found'),)
    depends_on = (Input.POD_NODE_CONSTRAINTS, Input.NODE)

    def _compares(self) -> bool:
        return self.handle.gates.is_enabled("TaintTolerationComparisonOperators")

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        """Judge each list of taints once, and spread the answers over the nodes."""
        if len(nodes.taint_sets) == 1:  # the list without taints
            return Rejections.none(nodes)
        compare = self._compares()
        refused = np.array(
            [find_untolerated(taints, pod.tolerations, comparison_operators=compare) is not None for taints in nodes.taint_sets]
        )
        if not refused.any():
            return Rejections.none(nodes)
        return Rejections.where(refused[nodes.taint_set], UNTOLERATED)

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Status | None:
        return None

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        if len(nodes.taint_sets) == 1:
            return nodes.uniform(0)
        return count_soft_taints(pod, nodes, self._compares())

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        return scale_to_best(scores, feasible, nodes, reverse=True)

    def is_tolerated_now(self, pod: PodView, old: Node | None, new: Node) -> bool:
        """Return whether the node's taints refused the pod before and do not refuse it now."""
        compare = self._compares()

        def refuses(node: Node) -> bool:
            return find_untolerated(node.spec.taints, pod.tolerations, comparison_operators=compare) is not None

        return (old is None or refuses(old)) and not refuses(new)

    def is_itself(self, pod: PodView, old: Pod | None, new: Pod) -> bool:
        """Return whether the pod with changed tolerations is the waiting pod."""
        return new.metadata.uid == pod.uid

    def advise(self, refused: Refused) -> list[Advice]:
        """Return the tolerations that would open nodes. Those for many taints also open the nodes that have fewer of them."""
        nodes, pod = refused.nodes, refused.pod.pod
        # By list of taints: what each list would need is worked out once. `time_added` is left out, because it differs
        # from node to node.
        lacking = {
            code: frozenset(replace(taint, time_added=None) for taint in untolerated(refused.pod, nodes.taint_sets[code]))
            for code in np.unique(nodes.taint_set[refused.alone]).tolist()
        }
        found = []
        # Tolerating the taints of one list opens all lists with no others: {a} opens nodes with a, {a, b} those with a,
        # with b, with both.
        for wanted in dict.fromkeys(lacking.values()):
            opened = refused.alone & np.isin(nodes.taint_set, [code for code, taints in lacking.items() if taints <= wanted])
            taints = sorted(wanted, key=lambda taint: (taint.key, taint.value, taint.effect))
            more = tuple(
                Toleration(key=taint.key, operator="Equal" if taint.value else "Exists", value=taint.value, effect=taint.effect)
                for taint in taints
            )
            changed = replace(pod, spec=replace(pod.spec, tolerations=(*pod.spec.tolerations, *more)))
            if refused.decide is not None and pod.spec.topology_spread_constraints:
                # A spread constraint may count tolerated nodes only, so more tolerations may change what it says of all nodes.
                opened = refused.decide(changed)
            if not opened.any():
                continue
            texts = [f"{t.key}={t.value}:{t.effect}" if t.value else f"{t.key}:{t.effect}" for t in taints]
            listed = " and ".join(texts)
            if any(taint.key.startswith(_BY_NODE_LIFECYCLE) for taint in taints):
                # Kubernetes puts these on nodes with a problem. To tolerate them is no advice.
                change: dict[str, object] = {"taints": texts}
                found.append(refused.advise("taint", f"once the taint {listed} is gone,", opened, change=change))
            else:
                change = {"tolerations": [codec.to_dict(each) for each in more]}
                found.append(refused.advise("tolerate", f"tolerating {listed},", opened, change=change, changed=changed))
        return found


def count_soft_taints(pod: PodView, nodes: Snapshot, compare: bool) -> Ints:
    """Return how many PreferNoSchedule taints of each node the pod does not tolerate."""
    # Only tolerations for PreferNoSchedule or for all effects count here, as in kube-scheduler's PreScore.
    soft = tuple(t for t in pod.tolerations if t.effect in ("", PREFER_NO_SCHEDULE))
    disliked = np.array(
        [
            sum(1 for taint in taints if taint.effect == PREFER_NO_SCHEDULE and not is_tolerated(taint, soft, compare))
            for taints in nodes.taint_sets
        ],
        dtype=np.int64,
    )
    counts: Ints = disliked[nodes.taint_set]
    return counts


def untolerated(pod: PodView, taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """Return the hard taints that a pod does not tolerate."""
    return tuple(taint for taint in taints if taint.effect in HARD_EFFECTS and not pod.tolerates(taint))
