"""Node selectors over columns: one boolean for each node, without a loop over nodes.

In: a parsed node selector and a snapshot. Out: the nodes that it matches. Each distinct label value is judged once. Example:
`disk In (ssd)` over 5,000 nodes with the values ssd, hdd and nvme compares 3 strings, gives [True, False, False], and takes the
entry of each node's value number. Tests compare the result with the selectors of `kube.api`, which look at one node.
"""

from __future__ import annotations

import numpy as np

from kubesched.kube.api import NodeSelectorMatcher, NodeTerm, RequiredNodeAffinity, Requirement, Selector, parse_int64
from kubesched.scheduler.cluster.columns import Bools
from kubesched.scheduler.cluster.nodes import LabelColumn
from kubesched.scheduler.cluster.snapshot import Snapshot


def match_requirement(requirement: Requirement, nodes: Snapshot) -> Bools:
    """Return which nodes' labels meet one requirement."""
    column = nodes.label(requirement.key)
    absent_counts = requirement.operator in ("NotIn", "DoesNotExist")
    if column is None:
        return np.full(nodes.n, absent_counts, dtype=np.bool_)
    codes = nodes.codes(requirement.key)
    values = column.values.values
    # One verdict for each value, and one more for "absent", which is code -1: the last element.
    verdicts = np.empty(len(values) + 1, dtype=np.bool_)
    verdicts[-1] = absent_counts
    if requirement.operator in ("In", "NotIn"):
        verdicts[:-1] = requirement.operator == "NotIn"
        for value in requirement.values:
            code = column.values.find(value)
            if code >= 0:
                verdicts[code] = requirement.operator == "In"
    elif requirement.operator in ("Exists", "DoesNotExist"):
        verdicts[:-1] = requirement.operator == "Exists"
    else:
        verdicts[:-1] = _compared(requirement, column)
    matched: Bools = verdicts[codes]
    return matched


def _compared(requirement: Requirement, column: LabelColumn) -> Bools:
    """Return which of a label's values lie above or below the one that is asked for."""
    limit = parse_int64(requirement.values[0])
    if limit is None:
        return np.zeros(len(column.values), dtype=np.bool_)
    numbers, are_numbers = column.numbers()
    found: Bools = are_numbers & (numbers > limit if requirement.operator == "Gt" else numbers < limit)
    return found


def match_selector(selector: Selector, nodes: Snapshot) -> Bools:
    """Return which nodes' labels a label selector matches."""
    if selector.is_nothing:
        return np.zeros(nodes.n, dtype=np.bool_)
    matched = np.ones(nodes.n, dtype=np.bool_)
    for requirement in selector.requirements:
        matched &= match_requirement(requirement, nodes)
    return matched


def match_term(term: NodeTerm, nodes: Snapshot) -> Bools:
    """Return which nodes meet all expressions and fields of one term."""
    if term.error is not None:
        return np.zeros(nodes.n, dtype=np.bool_)
    matched = np.ones(nodes.n, dtype=np.bool_)
    for requirement in term.expressions:
        matched &= match_requirement(requirement, nodes)
    for requirement in term.fields:
        matched &= _match_field(requirement, nodes)
    return matched


def match_node_selector(selector: NodeSelectorMatcher, nodes: Snapshot) -> Bools:
    """Return which nodes meet any term of a node selector."""
    matched = np.zeros(nodes.n, dtype=np.bool_)
    for term in selector.terms:
        matched |= match_term(term, nodes)
    return matched


def match_required(affinity: RequiredNodeAffinity, nodes: Snapshot) -> Bools:
    """Return which nodes meet a pod's nodeSelector and required node affinity."""
    matched = np.ones(nodes.n, dtype=np.bool_)
    if affinity.node_selector is not None:
        matched &= match_selector(affinity.node_selector, nodes)
    if affinity.affinity is not None:
        matched &= match_node_selector(affinity.affinity, nodes)
    return matched


def _match_field(requirement: Requirement, nodes: Snapshot) -> Bools:
    wanted = requirement.values[0]
    if requirement.key != "metadata.name":  # every other field reads as empty
        return np.full(nodes.n, (wanted == "") == (requirement.operator == "In"), dtype=np.bool_)
    named = np.zeros(nodes.n, dtype=np.bool_)
    row = nodes.row(wanted)
    if row >= 0:
        named[row] = True
    return named if requirement.operator == "In" else ~named
