"""What selectors cost: the figures of kube-scheduler's cost model, and bounds on time and memory that hold for any of them."""

import time
import tracemalloc

import pytest
from dra_world import DRIVER

from kubesched.kube.cel import Allowance, CelError, DeviceFacts, EvaluationError, NoAllowance, holds
from kubesched.kube.cel.checking import check
from kubesched.kube.cel.costs import COST_LIMIT
from kubesched.kube.cel.evaluation import Scope, build

CUT_OFF = "operation cancelled: actual cost limit exceeded"


def cost(expression, newer=True):
    record = DeviceFacts(DRIVER, {}, {}).record()
    scope = Scope({"device": record, **{f"device.{name}": value for name, value in record.items()}}, newer)
    build(check(expression))(scope)
    return scope.spent


@pytest.mark.parametrize(
    ("expression", "older", "newer"),
    [
        ("device.driver.startsWith('gpu')", 2 + 2, 2 + 1),  # of the text, of what is sought
        ("'a'.endsWith('12345678901')", 1, 2),
        ("matches('abcdefghij', '^a.*j$')", 1, 2 * 2),
        ("'abcdefghij'.matches('^a.*j$')", 2 * 2, 2 * 2),
        ("[1, 2, 3].includes(3)", 1, 3),
    ],
)
def test_what_costs_something_else_since_1_37(expression, older, newer):
    assert (cost(expression, newer=False), cost(expression)) == (older, newer)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true", 0),
        ("device.driver == ''", 2),  # the shorter text is empty
        ("device.driver == '12345678901'", 2 + 2),
        ("device.driver.startsWith('gpu')", 2 + 1),
        ("device.attributes['x.com'].size() == 0", 3 + 1 + 1),
        ("has(device.attributes.x)", 2),
        ("device.driver in ['a', 'b']", 2),  # a list of constants is a set
        ("device.driver in [device.driver]", 2 + 10 + 2 + 1),
        ("'abc'.contains('b')", 1),
        ("'a234567890b'.contains('0b')", 2 * 1),
        ("('a' + device.driver).size() == 0", 2 + 2 + 1 + 1),
        ("(device.driver + dyn('a')).size() == 0", 2 + 2 + 1 + 1),
        ("'abcdefghij'.matches('^a.*j$')", 2 * 2),
        ("'abcdefghij'.find('^a.*j$') == ''", 2 * 2),
        ("[1, 2, 3].exists(x, x == 3)", 3 * 3 + 3 * (1 + 1 + 1) + 1),
        ("[1, 2].all(x, x > 0)", 2 * 2 + 2 * (1 + 1 + 1) + 1),
        ("[1, 2].map(x, x).size() == 2", 2 * (1 + 10 + 1 + 1) + 1 + 1 + 1),
        ("[1, 2].filter(x, true).size() == 2", 2 * (1 + 10 + 1 + 1) + 1 + 1 + 1),
        ("lists.range(100).size() == 100", 111 + 1 + 1),
        ("lists.range(100).reverse().size() == 100", 111 + 111 + 1 + 1),
        ("[3, 1].sort() == [1, 3]", 2 * 4 + 11 + 1),
        ("['b', 'a'].distinct() == ['a']", int(2.1 * 4) + 11 + 1),
        ("sets.contains([1, 2, 3], [1, 2])", 7),
        ("[1, 2, 3].sum() == 6", 3 + 1),
        ("'a,b'.split(',').join('-') == ''", 1 + 1),
        ("'%s'.format(['x']) == 'x'", 1 + 1),
        ("int('3') == 3", 1),  # a conversion of a constant is a constant
        ("quantity('1Gi').isGreaterThan(quantity('1'))", 1 + 1 + 1),
        ("quantity('1Gi') == quantity('1')", 3),
        ("semver('1.2.3').major() == 1", 1 + 1 + 1),
        ("ip('10.0.0.1').family() == 4", 1 + 1 + 1),
        ("cidr('10.0.0.0/8').containsIP('10.1.1.1')", 1 + 1 + 1),
        ("format.dns1123Label().validate('a').hasValue()", 1 + 8 + 1),
        ("{'a': device.driver}.a == ''", 30 + 2 + 2),
        ("cel.bind(a, device.driver, a == '' || a == 'x')", 1 + 2 + 0 + 1 + 1),
        ("cel.bind(a, device.driver, true)", 0),
        ("true ? device.driver == '' : false", 2),
        ("(true ? device.driver : '') == ''", 1),
        ("device.attributes[?'x'].orValue({}).size() == 0", 3 + 1 + 1),
    ],
)
def test_costs_are_those_of_kube_scheduler(expression, expected):
    assert cost(expression) == expected


def grown(start, step, times, use):
    """Return an expression over a value that has grown in several steps: `v` followed by how many."""
    for i in range(times, 0, -1):
        use = f"cel.bind(v{i}, {step.replace('v', f'v{i - 1}')}, {use})"
    return f"cel.bind(v0, {start}, {use})"


def text(times, use):
    return grown("'xyxxyyxyxx'", "v + v", times, use)


def nested(times, use):
    return grown("[1]", "[v, v]", times, use)


HOSTILE = {
    "sums in a loop": "lists.range(200000).all(x, x * 2 + 1 - x > 0)",
    "loops in loops": "lists.range(2000).all(x, lists.range(2000).all(y, true))",
    "lists in lists": "lists.range(99).map(x, lists.range(99).map(y, lists.range(99).map(z, x + y + z))).size() > 0",
    "a long range": "lists.range(1000000).size() > 0",
    "a text that doubles": text(24, "size(v24) > 0"),
    "one whose type is not known": grown("dyn('xxxxxxxxxx')", "v + v", 24, "size(v24) > 0"),
    "a list that doubles": grown("[1, 2, 3]", "v + v", 24, "size(v24) > 0"),
    "a tree compared": nested(24, "v24 == v24"),
    "a tree printed": nested(24, "'%s'.format([v24]) == ''"),
    "a tree flattened": nested(24, "v24.flatten(50).size() == 1"),
    "a tree added up": nested(24, "dyn(v24).sum() == 1"),
    "trees told apart": nested(24, "[v24, v24, v24].distinct().size() == 1"),
    "replace by a long text": text(14, "v14.replace('x', v14).size() > 0"),
    "join with a long text": text(14, "lists.range(1000).map(x, v14).join(v14).size() > 0"),
    "many digits": "'%.999999999f'.format([1.0]) == ''",
    "a pattern with many states": text(16, "v16.matches('x.{900}z')"),
    "many patterns": "lists.range(10000).exists(i, 'a'.matches('x{500}' + string(i)))",
    "many matches": text(14, "lists.range(1000).all(x, v14.findAll('').size() > 0)"),
    "variables that nobody reads": "lists.range(99999).all(x, cel.bind(y, lists.range(1000), true))",
}


@pytest.mark.parametrize("expression", HOSTILE.values(), ids=HOSTILE)
def test_no_expression_takes_long(expression):
    start = time.process_time()
    with pytest.raises(EvaluationError, match=CUT_OFF):
        holds(expression, DeviceFacts(DRIVER, {}, {}))
    assert time.process_time() - start < 5  # less than half a second on an idle machine


@pytest.mark.parametrize("name", [name for name in HOSTILE if "text" in name or "list that" in name or "digits" in name])
def test_no_expression_takes_much(name):
    tracemalloc.start()
    try:
        with pytest.raises(EvaluationError, match=CUT_OFF):
            holds(HOSTILE[name], DeviceFacts(DRIVER, {}, {}))
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


BROKEN = {
    "deep parentheses": "(" * 5000 + "true" + ")" * 5000,
    "deep lists": "[" * 5000 + "]" * 5000 + " == []",
    "a long sum": "1" + "+1" * 5000 + " > 0",
    "a long chain": "device" + ".a" * 5000,
    "a long optional chain": "device.attributes[?'x']" + ".?a" * 3000 + ".hasValue()",
    "a long literal": "'" + "a" * 1_000_000 + "' == 'b'",
    "a number too large": "int('" + "9" * 9000 + "') > 0",
    "a version too large": "semver('" + "9" * 9000 + ".0.0').major() > 0",
    "an amount too large": "quantity('1e999999999') == quantity('1')",
    "a moment too late": "timestamp(9223372036854775807) > timestamp(0)",
    "a moment moved too far": "timestamp('9999-12-31T23:59:59Z') + duration('99999h') > timestamp(0)",
    "a time too long": "duration('9999999999999999999h') > duration('1s')",
    "no time at all": text(12, "duration(v12) > duration('1s')"),
}


@pytest.mark.parametrize("expression", BROKEN.values(), ids=BROKEN)
def test_whatever_is_wrong_is_told_in_one_short_text(expression):
    with pytest.raises(CelError) as raised:
        holds(expression, DeviceFacts(DRIVER, {}, {}))
    assert len(str(raised.value)) < 10_000 and "internal error" not in str(raised.value)


def test_long_rows_of_signs_do_not_end_the_process():
    assert holds("!" * 9998 + "true", DeviceFacts(DRIVER, {}, {}))
    assert holds("true" + " && true" * 1000, DeviceFacts(DRIVER, {}, {}))


EXPENSIVE = "lists.range(9999).all(x, x + 1 > 0)"


def test_expensive_expressions_share_an_allowance_and_cheap_ones_do_not_need_it():
    allowance = Allowance()
    alike, asked = [DeviceFacts(DRIVER, {}, {}) for _ in range(9)], 0
    with pytest.raises(NoAllowance):
        for facts in alike:
            holds(EXPENSIVE, facts, allowance)
            asked += 1
    assert 1 <= asked <= 2 and sum(EXPENSIVE in facts.answers for facts in alike) == asked
    assert holds(EXPENSIVE, alike[0], allowance), "what is known already is free"
    with pytest.raises(NoAllowance):
        holds("device.driver == ''", alike[5], allowance)
    assert 9 * allowance.left < COST_LIMIT


def test_compiling_long_expressions_counts_too():
    facts, allowance = DeviceFacts(DRIVER, {}, {}), Allowance()
    long = "device.driver != 'x' && " * 100
    with pytest.raises(NoAllowance):
        for i in range(20):
            holds(f"{long}{i} >= 0", facts, allowance)
    assert 2 <= len(facts.answers) <= 5
