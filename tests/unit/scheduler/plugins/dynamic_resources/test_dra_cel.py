"""CEL over devices: the language, Kubernetes' functions, and what is said of expressions that are wrong."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from dra_world import DRIVER, device, make

from kubesched.kube.cel import CelError, CompileError, EvaluationError, FactBook, devices, holds
from kubesched.kube.cel.checking import NO_CEL

A = f'device.attributes["{DRIVER}"]'
C = f'device.capacity["{DRIVER}"]'


def facts(*, lists=False, newer=True, **more):
    attributes = {"model": "a100", "numa": 0, "ecc": True, "fw": ("version", "1.2.0"), "other.com/x": 5}
    raw = device("d", {**attributes, **more.pop("attributes", {})}, {"memory": "40Gi", "cores": "1500m"}, **more)
    published = make(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {"driver": DRIVER, "devices": [raw]},
        }
    )
    return FactBook(lists, newer).facts(DRIVER, published.spec.devices[0])


FACTS = facts()

TRUE = [
    f'device.driver == "{DRIVER}"',
    f'{A}.model == "a100" && {A}.numa == 0 && {A}.ecc',
    f'{A}.model in ["h100", "a100"]',
    'device.attributes["other.com"].x > 4',
    '"model" in ' + A + ' && !("nope" in ' + A + ")",
    '!("unknown.com" in device.attributes) && size(device.attributes["unknown.com"]) == 0',
    'device.attributes[?"unknown.com"].hasValue() && has(device.capacity.unknown) && !device.attributes.?no.?x.hasValue()',
    '!("name" in device.capacity["d"]) || device.capacity["d"].name.isGreaterThan(quantity("1"))',
    f"has({A}.model) && !has({A}.nope) && has(device.attributes)",
    f"{A}.?nope.orValue(3) == 3 && {A}[?'numa'].hasValue()",
    f"{A}.fw.isGreaterThan(semver('0.0.1')) && {A}.fw.compareTo(semver('1.10.0')) < 0 && {A}.fw.major() == 1",
    f"{A}.fw == semver('1.2.0+build')",
    f"{A}.fw != '1.2.0' && !('1.2.0' == {A}.fw) && [{A}.fw] == ['0'] && !(dyn([1]) == dyn({A}.fw))",
    "semver('1.0.0-alpha').isLessThan(semver('1.0.0')) && semver('1.0.0-2').isLessThan(semver('1.0.0-10'))",
    "semver('v1.2', true).minor() == 2 && !isSemver('v1.2') && isSemver('01.2', true)",
    f"{C}.memory.isGreaterThan(quantity('1Ki')) && {C}.memory.compareTo(quantity('40Gi')) == 0",
    f"{C}.memory == quantity('40960Mi') && {C}.memory.asInteger() == 42949672960",
    f"!{C}.cores.isInteger() && {C}.cores.asApproximateFloat() == 1.5 && sign({C}.cores) == 1",
    "quantity('1Ki').add(quantity('1')).sub(25).asInteger() == 1000 && !isQuantity('1Kx')",
    "!device.allowMultipleAllocations",
    f"cel.bind(a, {A}, a.model == 'a100' && a.numa < 1.5)",
    "1 < 2.0 && 2u >= 1 && dyn(1) == 1.0 && dyn(1) != dyn('1')",
    f"{A}.exists(k, v, k == 'numa' && v == 0) && {A}.all(k, k != 'zz')",
    "[1, 2].exists(x, x / 0 == 1 || x == 2)",
    "[1, 2, 3].all(i, v, i < v) && [1, 2, 2].exists_one(x, x == 1)",
    "[1, 2].map(x, x * 2) == [2, 4] && [1, 2, 3].filter(x, x > 1).size() == 2 && [1, 2].map(x, x > 1, x) == [2]",
    "[1, 2].transformList(i, v, v + i) == [1, 3] && {'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
    "[3, 1, 2].sort() == [1, 2, 3] && [3, 1, 2].sortBy(e, -e) == [3, 2, 1] && [1, 1].distinct() == [1]",
    "[1, 2, 1, 3].distinct() == [1, 2, 3] && ['a', 'b', 'a'].distinct().join() == 'ab' && [[1], [2], [1]].distinct()[0] == [1]",
    "int(duration('-1.5s')) == -1500000000 && int(timestamp(5) - timestamp(3)) == 2000000000",
    "int(timestamp('1969-12-31T23:59:59.5Z')) == -1 && int(timestamp('1970-01-01T00:00:01.9Z')) == 1",
    "[1, 2, 3].sum() == 6 && [1, 3].max() == 3 && [1, 3].min() == 1 && [1, 2].isSorted()",
    "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && 'abcb'.indexOf('b') == 1",
    "[[1], [2]].flatten() == [1, 2] && lists.range(3) == [0, 1, 2] && [1, 2, 3].slice(1, 2) == [2]",
    "[1, 2].first().value() == 1 && [1, 2].last().orValue(0) == 2 && [1, 2].reverse() == [2, 1]",
    "sets.contains([1, 2], [2]) && sets.intersects([1], [1, 3]) && sets.equivalent([1, 2], [2, 1, 1])",
    "optional.of(1).optMap(x, x + 1).value() == 2 && !optional.none().hasValue() && [1, ?optional.none()].size() == 1",
    "'GPU'.lowerAscii() == 'gpu' && 'a,b'.split(',').join('-') == 'a-b' && ' x '.trim() == 'x'",
    "'abc'.charAt(1) == 'b' && 'abc'.substring(1, 2) == 'b' && 'aXa'.replace('a', 'b') == 'bXb'",
    "'%s-%d-%.2f'.format(['a', 3, 1.5]) == 'a-3-1.50' && strings.quote('a\"b') == '\"a\\\\\"b\"'",
    f"{A}.model.matches('^a[0-9]+$') && 'abc'.find('b.') == 'bc' && 'a1b2'.findAll('[0-9]') == ['1', '2']",
    "ip('10.0.0.1').family() == 4 && ip('::1').isLoopback() && ip.isCanonical('::1') && !isIP('1.2.3')",
    "cidr('10.0.0.0/8').containsIP('10.1.1.1') && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
    "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && string(cidr('10.1.2.3/8').ip()) == '10.1.2.3'",
    "url('https://a.com:80/x?y=1').getHost() == 'a.com:80' && url('https://a.com/x?y=1').getQuery()['y'] == ['1']",
    "format.dns1123Label().validate('a_b').hasValue() && !format.named('uuid').value().validate("
    "'123e4567-e89b-12d3-a456-426614174000').hasValue()",
    "timestamp('2024-01-01T00:00:00Z').getFullYear() == 2024 && duration('1h') > duration('30m')",
    "timestamp('2024-01-01T00:00:00Z') + duration('24h') == timestamp('2024-01-02T00:00:00Z')",
    f"type({A}.numa) == int && type(device.driver) == string && int('3') + 1 == 4 && string(1) == '1'",
    "-7 / 2 == -3 && -7 % 2 == -1 && 7u / 2u == 3u && 5.0 / 2.0 == 2.5",
    "true || 1 / 0 == 1",
    "'%e'.format([1052.032911275]) == '1.052033×10⁰³' && '%.3e'.format([-1e-5]) == '-1.000000×10⁻⁰⁵'",
    "'%f'.format([1234.5]) == '1,234.500000' && '%.1f %f'.format(['NaN', '-Infinity']) == 'NaN -∞'",
    "'%b %o %x %X %d'.format([5, 8, 255, 'é', 7u]) == '101 10 ff C3A9 7' && '%b'.format([true]) == '1'",
    "'%s'.format([[1.5, 'a', b'b', null, true]]) == '[1.500000, \"a\", b\"b\", null, true]'",
    "'%s'.format([{'b': [1], 'a': [2]}]) == '{\"a\":[2], \"b\":[1]}'",
    "string(1000000.0) == '1e+06' && string(0.5) == '0.5' && string(2.0) == '2' && '%s'.format([1.5]) == '1.5'",
    "optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.of(2)].unwrapOpt() == [2]",
    "optional.of(1).or(optional.of(2)).orValue(3) == 1",
    "!(false && 1 / 0 == 1)",
    "{'a': {'b': [1, 2]}}.a.b[1] == 2 && null == null && b'a' == bytes('a')",
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression):
    assert holds(expression, FACTS) is True


@pytest.mark.parametrize(
    "expression",
    [
        f'{A}.model == "h100"',
        '"other" in ' + A,
        f'{A}.fw.isGreaterThan(semver("1.5.0"))',
        f"{C}.memory.isLessThan(quantity('1Gi'))",
        "device.driver.endsWith('.org')",
        "1 > 2.0",
        "[1].exists(x, x > 1)",
    ],
)
def test_false(expression):
    assert holds(expression, FACTS) is False


def test_before_1_37_a_plain_value_is_as_good_as_an_optional():
    assert holds(f"{A}.model.orValue('x') == 'a100'", facts(newer=False))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("lists.range(-2).size() == 0", "lists.range: size must be non-negative, got -2"),
        ("lists.range(1000001).size() == 1000001", "lists.range: size 1000001 exceeds maximum allowed (1000000)"),
        ("'abc'.indexOf('', -1) == -1", "index out of range: -1"),
        ("'abc'.lastIndexOf('', -1) == -1", "index out of range: -1"),
    ],
)
def test_what_1_37_refuses_had_a_value_before(expression, text):
    if "1000001" not in expression:  # costs too much there
        assert holds(expression, facts(newer=False))
    with pytest.raises(EvaluationError, match=re.escape(text)):
        holds(expression, FACTS)


AS_THE_REFERENCE = [
    ("duration('1.000000001s') - duration('1s') == duration('1ns')", True),
    ("string(timestamp('2024-02-29T12:00:00.5+05:30')) == '2024-02-29T12:00:00.5+05:30'", True),
    ("timestamp('0000-12-31T23:00:00-01:00').getFullYear() == 1", True),
    ("timestamp('2020-01-01T00:00:00Z').getMinutes('01:75') == 15", True),
    ("timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z') > duration('0')", "integer overflow"),
    ("[duration('1h'), duration('30m')].sum() == duration('90m')", True),
    ("1.0 / -0.0 < 0.0", True),
    ("double(' 1') == 1.0", "invalid syntax"),
    ("double('1_000') == 1e3 && double('0x1p4') == 16.0", True),
    ("url('http://h/a b?x=1#f').getEscapedPath() == '/a%20b'", True),
    ("url('http://u:p@[::1]:8/p').getHostname() == '::1' && isURL('*') && !isURL('http://h/%zz')", True),
    ("format.datetime().validate('2020-01-02 03:04:05Z').hasValue()", True),
    ("format.dns1123Label().validate('a.b').value()[0] == 'must not contain dots'", True),
    ("'%e'.format([-0.0]) == '0.000000×10⁰⁰'", True),
    ("'%s'.format([[b'\\xff']]) == ''", "invalid UTF-8"),
    ("'%s'.format([quantity('1')]) == ''", "string clause can only be used"),
    ("'a'.find('\\\\C') == ''", "invalid escape sequence"),
    ("[1, 2].exists_one(i, v, i == 1) && 'x.exists_one(a, b, c)' != ''", True),
    ("[int].exists(t, t == int)", "reference to undefined type: t"),
    ("[1.5].reverse().sum() > 0.0", True),
    ("dyn([1.5]).reverse().sum() > 0.0", "no such overload"),
    ("[].sum() == 0 && [1.5].filter(x, false).sum() == 0.0", True),
    ("duration(1 + 1) == duration('2ns')", "no matching overload for 'duration'"),
    ("[optional.of(1)].unwrapOpt()[0] == 'a'", "no matching overload"),
    ("string(cidr('10.0.0.0/8')).min() == 1", "no matching overload"),
    ("has(device.attributes['gpu.example.com'].?idx.a)", False),
    ("true || [1, 1 / 0].distinct() == []", True),
    ("[1, 1 / 0].distinct() == [] || true", "internal error"),
    ("[1 / 0].sort() == [] || true", "internal error"),
    ("dyn([1 / 0]).sort() == [] || true", True),
    ("optional.ofNonZeroValue(duration('0s')).hasValue()", False),
    ("[1][?dyn(0.0)].hasValue() && !dyn(1)[?0].hasValue()", True),
    ("sets.contains(dyn('a'), ['a'])", "no such overload"),
]


@pytest.mark.parametrize(("expression", "expected"), AS_THE_REFERENCE)
def test_corners_that_random_expressions_found(expression, expected):
    if isinstance(expected, bool):
        assert holds(expression, FACTS) is expected
    else:
        with pytest.raises(CelError, match=re.escape(expected)):
            holds(expression, FACTS)


@pytest.mark.parametrize("newer", [False, True])
def test_texts_are_sought_up_to_their_end(newer):
    assert holds(
        "'abc'.indexOf('b', 3) == -1 && 'abc'.lastIndexOf('b', 3) == -1 && 'abc'.lastIndexOf('bc', 2) == 1", facts(newer=newer)
    )
    assert holds("'abc'.indexOf('', 9) == 9", facts(newer=newer)) is not newer
    assert holds("'abc'.lastIndexOf('', 9) == 3", facts(newer=newer)) is newer


@pytest.mark.parametrize(
    "expression",
    [
        "duration('-90.25s').getMilliseconds() == -90250",
        "timestamp('2020-01-01T00:00:00Z').getHours('5:30') == 5",
        "timestamp('2020-01-01T00:00:00Z').getHours('-02:30') == 21",
        "'\\u001f a '.trim() == '\\u001f a'",  # no white space to Go
    ],
)
def test_time_and_space(expression):
    assert holds(expression, FACTS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", True), ("1e3", True), ("40Gi", True), ("99Ti", True), ("Ki", True)]
    # What is kept with a fraction, or as a number of any precision, is not seen to be whole.
    + [(text, False) for text in ("1.0", "1000m", "m", "1.5Ki", "1.0Ki", "100Ti", "1Pi", "100000Gi", "9223372036854775807")],
)
def test_is_integer_depends_on_how_a_quantity_is_kept(text, expected):
    assert holds(f"quantity('{text}').isInteger()", FACTS) is expected


def test_sums_of_quantities_are_kept_as_finely_as_what_they_are_made_of():
    assert holds("quantity('1').add(quantity('1')).isInteger() && !quantity('1.0').add(1).isInteger()", FACTS)
    assert holds("quantity('1.0').sub(quantity('1.0')).isInteger() == false && !quantity('1Pi').sub(1).isInteger()", FACTS)


def test_a_sum_is_not_found_on_the_right():
    assert holds("quantity('1').add(1) == quantity('2') && quantity('2') != quantity('1').add(1)", FACTS)
    assert holds("!(quantity('2') in [quantity('1').add(1)])", FACTS)
    with pytest.raises(EvaluationError, match="no such overload"):
        holds("quantity('2') == quantity('1').add(1)", FACTS)


@pytest.mark.parametrize(
    "expression",
    [
        "[[1, 2].sum(), 3].size() == 2 && {'a': 1, 'b': [100, -1].max()}.b == 100",  # their type is known
        "dyn([2, 0, 3]).indexOf(0) == 1",
        "{'a': 1, 'a': 2}.a == 2 && {device.driver: 1, device.driver: 2}.size() == 1",
    ],
)
def test_what_the_check_lets_pass(expression):
    assert holds(expression, FACTS)


def test_numbers_that_are_none_have_no_order():
    with pytest.raises(EvaluationError, match="NaN values cannot be ordered"):
        holds("1.0 < 0.0 * (1e300 * 1e300)", FACTS)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (f"'%s'.format([{A}.model]) == 'a100'", "was given any"),  # attributes were of type any
        (f"dyn({A}.ecc)", "must evaluate to bool or the unknown type, not dyn"),
    ],
)
def test_what_the_check_refuses_before_1_37(expression, text):
    assert holds(expression, FACTS)
    with pytest.raises(CompileError, match=text):
        holds(expression, facts(newer=False))


@pytest.mark.parametrize("clause", ["%d", "%x", "%.2f", "%b"])
def test_templates_that_do_not_fit_the_types_of_values_are_refused(clause):
    with pytest.raises(CompileError, match="was given"):
        holds(f"true || '{clause}'.format([duration('1s') + duration('1s')]) == ''", FACTS)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (f"{A}.nope == 1", "no such key: nope"),
        ('device.attributes["unknown.com"].x == 1', "no such key: x"),
        (f"{A}.fw == '1.2.0'", "no such overload"),
        (f"dyn({C}.memory) == dyn(1)", "no such overload"),
        (f"{A}.numa", "CEL result of type int could not be converted to bool"),
        (f"{A}.model > 1", "no such overload: _>_(string, int)"),
        ("1 / 0 == 1", "division by zero"),
        (f"{A}.model.orValue('x') == 'a100'", "no such overload"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("[1][2] == 1", "index out of bounds: 2"),
        ("semver('x').major() == 1", '"x" is not a semantic version'),
        ("'a'.matches('(?=' + 'b)')", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        ("'a'.find('(' + 'b') == ''", "Illegal regex: error parsing regexp: missing closing ): `(b`"),
        (
            "'%d'.format(dyn([1.5])) == ''",
            "error during formatting: decimal clause can only be used on integers, was given double",
        ),
        ("'%s'.format(dyn([])) == ''", "index 0 out of range"),
        ("[1].all(x, 1 / (x - 1) == 1)", "division by zero"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        ("lists.range(2000).all(x, lists.range(2000).all(y, true))", "actual cost limit exceeded"),
    ],
)
def test_no_value(expression, text):
    with pytest.raises(EvaluationError) as raised:
        holds(expression, FACTS)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("", "the expression is empty"),
        ("1 +", "Syntax error"),
        ("device.driver", "must evaluate to bool or the unknown type, not string"),
        ("device.nope == 1", "undefined field 'nope'"),
        ("nope(1)", "undeclared reference to 'nope'"),
        ("unknown == 1", "undeclared reference to 'unknown'"),
        ("device.driver > 1", "no matching overload"),
        (f"{C}.memory.isGreaterThan(semver('1.0.0'))", "no matching overload"),
        (f"{C}.memory > 1", "no matching overload"),
        (f"{C}.memory.sign() == 1", "undeclared reference to 'sign'"),
        ("1 < 2.0 && 'a'.nope()", "undeclared reference to 'nope'"),
        ("true || 'a'.matches('(')", "invalid matches argument"),
        ("true || 'a'.find('(') == ''", "program instantiation failed: error parsing regexp: missing closing ): `(`"),
        ("true || 'a'.findAll('(', 1) == []", "program instantiation failed: error parsing regexp"),
        ("true || int('x') == 1", 'program instantiation failed: strconv.ParseInt: parsing "x": invalid syntax'),
        ("true || duration('x') == duration('1s')", "invalid duration"),
        ("'abc'.reverse() == 'cba'", "found no matching overload for 'reverse'"),
        ("[1, 'a'].size() == 2", "expected type 'int' but found 'string'"),
        ("{'a': 1, 'b': 'c'}.size() == 2", "expected type 'int' but found 'string'"),
        ("[[1], ['a']].size() == 2", "expected type 'list(int)' but found 'list(string)'"),
        ("['a'.split(','), [dyn(1)]].size() == 2", "expected type 'list(string)' but found 'list(dyn)'"),
        (
            "{'a': {'b': [1]}, 'c': {1: [1]}}.size() == 2",
            "expected type 'map(string, list(int))' but found 'map(int, list(int))'",
        ),
        ("[int, 1].size() == 2", "expected type 'type(int)' but found 'int'"),
        (
            "[optional.of(1), optional.of('a')].size() == 2",
            "expected type 'optional_type(int)' but found 'optional_type(string)'",
        ),
        ("[?optional.of(1), 'a'].size() == 2", "expected type 'int' but found 'string'"),
        ("{?'a': optional.of(1), 'b': 'c'}.size() == 2", "expected type 'int' but found 'string'"),
        (f"{A}.model.reverse() == 'x'", "found no matching overload for '_==_'"),
        ("'ab'.reverse() == 'ba'", "found no matching overload for 'reverse'"),
        ("[[[1]].flatten(), ['a']].size() == 2", "expected type 'list(int)' but found 'list(string)'"),
        ("true || '%d'.format(['a']) == ''", "decimal clause can only be used on integers, was given string"),
        ("true || '%s'.format([]) == ''", "index 0 out of range"),
        ("true || '%s'.format([1, 2]) == ''", "too many arguments supplied to string.format (expected 1, got 2)"),
        ("true || '%y'.format([1]) == ''", 'unrecognized formatting clause "y"'),
    ],
)
def test_does_not_compile(expression, text):
    with pytest.raises(CompileError) as raised:
        holds(expression, FACTS)
    assert text in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "expression",
    [
        "[[], [1]].size() == 2",
        "[[[1]].flatten(), [1]].size() == 2",
        "[?optional.of(1), 2].size() == 2",
        "{?'a': optional.of([]), 'b': [1]}.size() == 2",
        "[has(device.driver), device.allowMultipleAllocations].size() == 2",
        "'%s %s'.format([[1, 'a'], {'b': 1, 'c': 'd'}]) != ''",
    ],
)
def test_lists_and_maps_of_one_type_compile(expression):
    assert holds(expression, FACTS) is True


def test_an_attribute_that_cannot_be_read_breaks_every_expression():
    for attributes, text in (
        ({"v": ("version", "1.x")}, "attribute v: parse semantic version"),
        ({"t": ("strings", ["a"])}, "attribute t: unsupported attribute value"),
    ):
        with pytest.raises(EvaluationError, match=text):
            holds("true", facts(attributes=attributes, newer=False))
    assert holds(f'{A}.t.includes("a")', facts(attributes={"t": ("strings", ["a"])}))  # since 1.37 no gate is asked


@pytest.mark.parametrize(
    "expression",
    ["'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'.matches('^(a+)+$')", "'A'.find('(x+x+)+y') == 'b'"],
)
def test_no_pattern_backtracks(expression):
    assert holds(expression, FACTS) is False


def test_lists_can_be_read_where_the_gate_is_on():
    there = facts(lists=True, attributes={"t": ("strings", ["a", "b"]), "v": ("versions", ["1.2.3"])})
    assert holds(f"{A}.t.includes('b') && {A}.numa.includes(0) && {A}.v[0].minor() == 2", there)


def test_an_answer_is_remembered_for_all_devices_that_look_the_same(monkeypatch):
    book, calls = FactBook(), []
    evaluate = devices._evaluate
    monkeypatch.setattr(devices, "_evaluate", lambda *args: calls.append(args) or evaluate(*args))
    raw = [
        make(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": "s"},
                "spec": {"devices": [device(name, {"x": 1})]},
            }
        ).spec.devices[0]
        for name in ("d1", "d2")
    ]
    for each in raw:
        holds("device.driver == 'x'", book.facts("x", each))
        with pytest.raises(CelError):
            holds("1 / 0 == 1", book.facts("x", each))
    assert len(calls) == 2


def test_the_library_is_not_loaded_before_a_selector_is_met():
    code = (
        "import sys, kubesched.scheduler.plugins.dynamic_resources; "
        "assert not any(name.startswith(('cel_expr_python', 're2')) for name in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


EXAMPLE = Path(__file__).parents[5] / "docs" / "examples" / "plugins" / "dynamic_resources.yaml"
NO_LIBRARY = """
import sys
sys.modules["cel_expr_python"] = None  # as if it were not installed
sys.argv = ["kubesched", *sys.argv[1:]]
from kubesched.cli import main
main()
"""


def without_the_library(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", NO_LIBRARY, *words], capture_output=True, text=True, timeout=60, check=False)


def test_without_the_library_a_selector_is_an_error_that_says_what_to_install():
    asked = without_the_library("why", "web", "--snapshot", str(EXAMPLE))
    assert (asked.returncode, asked.stderr) == (1, f"Error: {NO_CEL}\n")
    assert "kubesched[dra]" in NO_CEL


def test_without_the_library_run_warns_when_it_starts(tmp_path):
    done = without_the_library("run", "--master=127.0.0.1:1", f"--write-config-to={tmp_path / 'out'}", "--leader-elect=false")
    assert f"Pods with device selectors cannot be placed: {NO_CEL}" in done.stderr
