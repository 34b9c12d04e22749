from __future__ import annotations

from typing import Any

import pytest

from kubesched.kube.api.codec import convert
from kubesched.kube.api.matching import (
    HARD_EFFECTS,
    UNSCHEDULABLE_TAINT,
    NodeSelectorMatcher,
    compile_node_selector,
    compile_pod_affinity,
    compile_preferred_terms,
    compile_required_node_affinity,
    find_untolerated,
    is_names_alone,
    named_nodes,
    tolerates,
)
from kubesched.kube.api.node import NodeSelector, Taint
from kubesched.kube.api.pod import NodeAffinity, Pod, Toleration
from kubesched.kube.api.selectors import Requirement, SelectorError

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def node_selector(*terms: dict[str, Any]) -> NodeSelectorMatcher:
    return compile_node_selector(convert({"nodeSelectorTerms": list(terms)}, NodeSelector))


def expressions(*triples: tuple[str, str, list[str] | None]) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": word, "values": values} for key, word, values in triples]}


def fields(*triples: tuple[str, str, list[str]]) -> dict[str, Any]:
    return {"matchFields": [{"key": key, "operator": word, "values": values} for key, word, values in triples]}


def pod(**spec: Any) -> Pod:
    return convert({"metadata": {"name": "p", "namespace": "own"}, "spec": spec}, Pod)


# --- node selectors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sentence", "terms", "labels", "expected"),
    [
        ("no terms match no node", [], {"a": "1"}, False),
        ("an empty term matches no node", [{}], {"a": "1"}, False),
        ("an empty term does not spoil another", [{}, expressions(("a", "In", ["1"]))], {"a": "1"}, True),
        ("one term is enough", [expressions(("a", "In", ["2"])), expressions(("a", "In", ["1"]))], {"a": "1"}, True),
        ("all of a term must hold", [expressions(("a", "In", ["1"]), ("b", "Exists", []))], {"a": "1"}, False),
        ("all of a term hold", [expressions(("a", "In", ["1"]), ("b", "Exists", []))], {"a": "1", "b": ""}, True),
        ("NotIn takes an absent label", [expressions(("a", "NotIn", ["1"]))], {}, True),
        ("NotIn with a broken value never matches", [expressions(("a", "NotIn", ["b c"]))], {}, False),
        (
            "a broken term leaves others",
            [expressions(("a", "Odd", [])), expressions(("a", "Exists", []))],
            {"a": ""},
            True,
        ),
        ("DoesNotExist", [expressions(("a", "DoesNotExist", []))], {"b": ""}, True),
    ],
)
def test_node_selector_terms(sentence: str, terms: list[Any], labels: dict[str, str], expected: bool) -> None:
    assert node_selector(*terms).matches("n1", labels) is expected, sentence


@pytest.mark.parametrize(
    ("label", "operator", "bound", "expected"),
    [
        ("5", "Gt", "4", True),
        ("5", "Gt", "5", False),
        ("5", "Lt", "6", True),
        ("5", "Lt", "5", False),
        ("-5", "Lt", "0", True),
        ("+7", "Gt", "6", True),
        ("007", "Gt", "6", True),
        ("7", "Gt", "006", True),
        ("7.5", "Gt", "6", False),
        ("", "Gt", "6", False),
        ("seven", "Lt", "9", False),
        (None, "Gt", "0", False),
        (None, "Lt", "0", False),
        ("9223372036854775807", "Gt", "1", True),
        ("9223372036854775808", "Gt", "1", False),
        ("5", "Gt", "9223372036854775808", False),
        ("5", "Gt", "-6", False),  # a negative bound is no label value
        ("5", "Gt", "six", False),
        ("5", "Gt", "", False),
    ],
)
def test_greater_and_less(label: str | None, operator: str, bound: str, expected: bool) -> None:
    labels = {} if label is None else {"rank": label}
    assert node_selector(expressions(("rank", operator, [bound]))).matches("n", labels) is expected


@pytest.mark.parametrize("values", [[], ["1", "2"]])
def test_greater_needs_exactly_one_value(values: list[str]) -> None:
    matcher = node_selector(expressions(("rank", "Gt", values)))
    assert not matcher.matches("n", {"rank": "9"})
    assert "for 'Gt', 'Lt' operators, exactly one value is required" in str(matcher.error)


@pytest.mark.parametrize(
    ("triple", "name", "expected"),
    [
        (("metadata.name", "In", ["n1"]), "n1", True),
        (("metadata.name", "In", ["n1"]), "n2", False),
        (("metadata.name", "NotIn", ["n1"]), "n1", False),
        (("metadata.name", "NotIn", ["n1"]), "n2", True),
        (("metadata.name", "In", ["n1", "n2"]), "n1", False),
        (("metadata.name", "In", []), "n1", False),
        (("metadata.name", "Exists", []), "n1", False),
        (("metadata.namespace", "In", ["x"]), "n1", False),
        (("metadata.namespace", "In", [""]), "n1", True),
        (("metadata.namespace", "NotIn", ["x"]), "n1", True),
    ],
)
def test_fields(triple: tuple[str, str, list[str]], name: str, expected: bool) -> None:
    assert node_selector(fields(triple)).matches(name, {}) is expected


def test_labels_and_fields_of_a_term_must_both_match() -> None:
    matcher = node_selector({**expressions(("a", "Exists", [])), **fields(("metadata.name", "In", ["n1"]))})
    assert matcher.matches("n1", {"a": ""})
    assert not matcher.matches("n2", {"a": ""})
    assert not matcher.matches("n1", {})


def test_a_node_without_name_is_not_asked_for_its_fields() -> None:
    matcher = node_selector({**expressions(("a", "Exists", [])), **fields(("metadata.name", "In", ["n1"]))})
    assert matcher.matches("", {"a": ""})
    assert not matcher.matches("", {})


def test_the_parts_can_be_walked() -> None:
    matcher = node_selector({}, expressions(("a", "In", ["1", "2"])), expressions(("a", "Odd", ["1"])))
    assert matcher.terms[0].expressions == (Requirement("a", "In", ("1", "2")),)
    assert (matcher.terms[0].fields, matcher.terms[0].error) == ((), None)
    assert matcher.terms[1].error == (
        'nodeSelectorTerms[2].matchExpressions[0].operator: Unsupported value: "Odd": supported values: '
        '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
    )
    assert matcher.error == matcher.terms[1].error
    assert node_selector(expressions(("a", "Exists", []))).error is None


def test_field_errors_name_their_place() -> None:
    matcher = node_selector(fields(("metadata.name", "In", ["a", "b"]), ("metadata.name", "Gt", ["1"])))
    assert matcher.error == (
        '[nodeSelectorTerms[0].matchFields[0].values: Invalid value: ["a","b"]: must have one element, '
        'nodeSelectorTerms[0].matchFields[1].operator: Unsupported value: "Gt": supported values: "In", "NotIn"]'
    )


def test_errors_of_several_terms_are_told_flat() -> None:
    matcher = node_selector(expressions(("a", "In", []), ("b", "Odd", [])), expressions(("c", "Exists", ["x"])))
    assert len(matcher.terms[0].errors) == 2
    assert str(matcher.error).count("[nodeSelectorTerms") == 1
    assert str(matcher.error).count("nodeSelectorTerms") == 3


# --- required and preferred node affinity -----------------------------------------------------------------------------


@pytest.mark.parametrize("selector", [None, {}])
def test_an_empty_node_selector_demands_nothing(selector: dict[str, str] | None) -> None:
    subject = pod(nodeSelector=selector)
    assert subject.spec.node_selector == selector
    assert compile_required_node_affinity(subject).matches("n", {})


def preferred(*wishes: tuple[int, dict[str, Any]]) -> NodeAffinity:
    listed = [{"weight": weight, "preference": term} for weight, term in wishes]
    return convert({PREFERRED: listed}, NodeAffinity)


def test_wishes_without_weight_or_content_are_dropped_before_they_are_read() -> None:
    affinity = preferred((0, expressions(("a b", "Odd", []))), (5, {}), (7, expressions(("a", "Exists", []))))
    assert affinity.preferred is not None
    (wish,) = compile_preferred_terms(affinity.preferred)
    assert wish.weight == 7
    assert wish.term.matches("n", {"a": ""})


def test_a_broken_wish_is_an_error() -> None:
    affinity = preferred(
        (1, expressions(("a", "Exists", []))),
        (1, expressions(("a", "In", []), ("b", "Gt", None))),
        (1, {"matchFields": [{"key": "metadata.name", "operator": "In", "values": []}, {"operator": "<"}]}),
    )
    assert affinity.preferred is not None
    with pytest.raises(SelectorError) as caught:
        compile_preferred_terms(affinity.preferred)
    assert str(caught.value) == (
        "[[1].matchExpressions[0].values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty, "
        "[1].matchExpressions[1].values: Invalid value: null: for 'Gt', 'Lt' operators, exactly one value is required, "
        "[2].matchFields[0].values: Invalid value: []: must have one element, "
        '[2].matchFields[1].operator: Unsupported value: "\\u003c": supported values: "In", "NotIn"]'
    )


def test_absent_wishes_are_not_empty_wishes() -> None:
    assert convert({}, NodeAffinity).preferred is None
    assert convert({PREFERRED: []}, NodeAffinity).preferred == ()


# --- pod affinity -----------------------------------------------------------------------------------------------------


def test_a_broken_term_empties_its_group_only_and_is_named() -> None:
    good = {"topologyKey": "zone", "labelSelector": {}}
    bad = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "k", "operator": "Odd"}]}}
    compiled = compile_pod_affinity(
        pod(
            affinity={
                "podAffinity": {REQUIRED: [good, bad], PREFERRED: [{"weight": 1, "podAffinityTerm": good}]},
                "podAntiAffinity": {REQUIRED: [good], PREFERRED: [{"weight": 1, "podAffinityTerm": bad}]},
            }
        )
    )
    assert (len(compiled.required), len(compiled.required_anti)) == (0, 1)
    assert (len(compiled.preferred), len(compiled.preferred_anti)) == (1, 0)
    complaint = '"Odd" is not a valid label selector operator'
    assert compiled.error == f"[requiredAffinityTerms: {complaint}, preferredAntiAffinityTerms: {complaint}]"


@pytest.mark.parametrize(
    ("side", "rule", "group"),
    [
        ("podAffinity", REQUIRED, "requiredAffinityTerms"),
        ("podAntiAffinity", REQUIRED, "requiredAntiAffinityTerms"),
        ("podAffinity", PREFERRED, "preferredAffinityTerms"),
        ("podAntiAffinity", PREFERRED, "preferredAntiAffinityTerms"),
    ],
)
def test_each_group_has_its_own_prefix(side: str, rule: str, group: str) -> None:
    bad: dict[str, Any] = {"namespaceSelector": {"matchExpressions": [{"key": "k", "operator": "Odd"}]}}
    stated = [bad] if rule == REQUIRED else [{"weight": 1, "podAffinityTerm": bad}]
    compiled = compile_pod_affinity(pod(affinity={side: {rule: stated}}))
    assert compiled.error == f'{group}: "Odd" is not a valid label selector operator'


def test_a_pod_that_says_nothing_has_no_terms() -> None:
    for subject in (pod(), pod(affinity={}), pod(affinity={"podAffinity": {}})):
        compiled = compile_pod_affinity(subject)
        assert not (compiled.required or compiled.required_anti or compiled.preferred or compiled.preferred_anti)


# --- tolerations ------------------------------------------------------------------------------------------------------

TAINT = Taint(key="k", value="v", effect="NoSchedule")


@pytest.mark.parametrize(
    ("operator", "mine", "theirs", "expected"),
    [
        ("Lt", "10", "9", True),
        ("Lt", "10", "10", False),
        ("Gt", "10", "11", True),
        ("Gt", "10", "10", False),
        ("Gt", "-10", "-9", True),
        ("Gt", "0", "1", True),
        ("Gt", "00", "1", False),
        ("Gt", "+1", "2", False),
        ("Gt", "01", "2", False),
        ("Gt", "-0", "2", False),
        ("Gt", "x", "2", False),
        ("Gt", "1", "x", False),
        ("Gt", "", "", False),
        ("Lt", "9223372036854775808", "1", False),
    ],
)
def test_comparing_tolerations_need_their_gate(operator: str, mine: str, theirs: str, expected: bool) -> None:
    toleration = Toleration(key="k", operator=operator, value=mine)
    taint = Taint(key="k", value=theirs, effect="NoSchedule")
    assert tolerates(toleration, taint, comparison_operators=True) is expected
    assert tolerates(toleration, taint) is False


def test_only_the_named_effects_are_looked_at() -> None:
    soft = Taint(key="a", effect="PreferNoSchedule")
    hard = Taint(key="b", effect="NoExecute")
    assert {"NoSchedule", "NoExecute"} == HARD_EFFECTS
    assert find_untolerated((soft, hard), ()) == hard
    assert find_untolerated((soft,), ()) is None
    assert find_untolerated((soft, hard), (), effects=("PreferNoSchedule",)) == soft
    assert find_untolerated((hard,), (Toleration(key="b", operator="Exists"),)) is None


def test_the_first_untolerated_taint_is_found() -> None:
    first, second = Taint(key="a", effect="NoSchedule"), Taint(key="b", effect="NoSchedule")
    assert find_untolerated((first, second), ()) == first
    assert find_untolerated((first, second), (Toleration(key="a", operator="Exists"),)) == second


def test_the_cordon_is_a_taint() -> None:
    assert (UNSCHEDULABLE_TAINT.key, UNSCHEDULABLE_TAINT.effect) == ("node.kubernetes.io/unschedulable", "NoSchedule")
    assert tolerates(Toleration(key="node.kubernetes.io/unschedulable", operator="Exists"), UNSCHEDULABLE_TAINT)


NAME = "metadata.name"
ON_SSD = expressions(("disk", "In", ["ssd"]))


@pytest.mark.parametrize(
    ("terms", "alone"),
    [
        pytest.param([fields((NAME, "In", ["n1"])), fields((NAME, "In", ["n2"]))], True, id="a name in every term"),
        pytest.param([fields((NAME, "In", ["n1", "n2"]))], False, id="two names in one term are an error"),
        pytest.param([fields((NAME, "In", ["n1"])) | ON_SSD], False, id="a label as well"),
        pytest.param([fields((NAME, "In", ["n1"]), (NAME, "In", ["n1"]))], False, id="two fields"),
        pytest.param([fields((NAME, "NotIn", ["n1"]))], False, id="any but one"),
        pytest.param([fields((NAME, "In", ["n1"])), ON_SSD], False, id="a term without a name"),
    ],
)
def test_names_alone_need_no_compiling(terms: list[dict[str, Any]], alone: bool) -> None:
    required = convert({"nodeSelectorTerms": terms}, NodeSelector)
    assert is_names_alone(required) is alone
    if alone:
        names = named_nodes(required)
        assert names is not None
        assert all(compile_node_selector(required).matches(name, {}) == (name in names) for name in ("n1", "n2", "n3"))
