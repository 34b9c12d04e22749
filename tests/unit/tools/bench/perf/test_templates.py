"""The part of Go's text/template that scheduler_perf's files use, and what is said about the rest."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.errors import ConfigError
from kubesched.tools.bench.perf.templates import FUNCTIONS, Template

VALUES: dict[str, Any] = {"Index": 7, "Count": 30, "class": "example.com/gpu", "half": 0.5, "none": None, "names": ["a", "b"]}

CASES = [
    ("text without actions stays", "name: a", "name: a"),
    ("a field", "pod-{{.Index}}-{{ .Count }}", "pod-7-30"),
    ("a number from a file prints as an integer", "{{.big}}", "5000"),
    ("a field that is not there", "{{.nothing}}", "<no value>"),
    ("integer division cuts off", "{{DivideInt .Index 2}} {{ DivideInt 30000 .Count }}", "3 1000"),
    ("float division does not", "{{DivideFloat .Index 2}}", "3.5"),
    ("a remainder", "{{Mod .Index 3}} {{Mod -7 3}}", "1 -1"),
    ("parentheses", "{{AddInt 8000 (Mod .Index (DivideInt .Count 10))}}", "8001"),
    ("arithmetic", "{{SubtractInt 5 7}} {{MultiplyInt 2 3 4}} {{AddFloat 1 .half}} {{MultiplyFloat 3 .half}}", "-2 24 1.5 1.5"),
    ("numbers in texts count as numbers", '{{AddInt "4" 1}} {{Int "12"}} {{Int 3.9}}', "5 12 3"),
    ("a pipe hands on the last argument", "{{.Index | DivideInt 30}}", "4"),
    ("a variable", '{{$n := or .sharedValue "shared"}}{{$n}}-{{$n}}', "shared-shared"),
    ("a variable with a pipe", "{{$n := (or .numRequests 1) | Int}}{{range $n}}[{{.}}]{{end}}", "[0]"),
    ("JSON of a list, and of nothing", "{{.names | JSON}} {{(or .selectors nil) | JSON}}", '["a","b"] null'),
    ("a range over a number names its turn", "{{range $i := (3 | Int)}}{{$i}}{{end}}", "012"),
    ("a range over a list", "{{range .names}}<{{.}}>{{end}}", "<a><b>"),
    ("a range over nothing", "{{range .names2}}x{{else}}none{{end}}", "none"),
    ("inside a range the fields are behind $", "{{range .names}}{{$.Index}}{{.}}{{end}}", "7a7b"),
    ("if and else", '{{if eq .class "example.com/gpu"}}gpu{{else}}other{{end}}', "gpu"),
    ("else if", "{{if .none}}a{{else if ge .Index 7}}b{{else}}c{{end}}", "b"),
    ("what is empty is false", "{{if .nothing}}a{{end}}{{if .none}}b{{end}}{{if 0}}c{{end}}-", "-"),
    ("comparisons", "{{lt 1 2}} {{le 2 2}} {{gt 1 2}} {{ne 1 2}} {{eq 3 1 3}}", "true true false true true"),
    ("logic, and the length of a list", "{{not true}} {{and 1 0}} {{or 0 2}} {{len .names}}", "false 0 2 2"),
    ("blanks are trimmed where asked for", "a\n  {{- if true }}\nb{{- end }}\nc {{- /* said */ -}} d", "a\nb\ncd"),
    ("an assignment inside stays inside", "{{$a := 1}}{{if true}}{{$a := 2}}{{$a}}{{end}}{{$a}}", "21"),
]


@pytest.mark.parametrize(("case", "text", "made"), CASES, ids=[case[0] for case in CASES])
def test_rendering(case: str, text: str, made: str) -> None:
    assert Template(text, "file").render({**VALUES, "big": 5000.0}) == made


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{Reverse .Index}}", "file: the template function 'Reverse' is not known"),
        ("{{.Index | Upper}}", "file: the template function 'Upper' is not known"),
        ("{{AddInt Foo 1}}", "file: the template function 'Foo' is not known"),
        ("{{with .a}}{{end}}", "file: the template action 'with' is not known"),
        ('{{template "x"}}', "file: the template action 'template' is not known"),
        ("{{if .a}}", "file: an if has no end"),
        ("{{range 3}}", "file: a range has no end"),
        ("a{{end}}", "file: {{end}} without a beginning"),
        ("{{$x}}", "file: the variable $x is not set"),
        ("{{(AddInt 1 2}}", "file: a parenthesis is not closed"),
        ("{{.a 1}}", "file: .a is not a function"),
        ('{{"a}}', "is not understood"),
    ],
)
def test_what_is_not_known_is_named_before_anything_is_rendered(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Template(text, "file")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{DivideInt 1 0}}", "file: division by zero"),
        ("{{Mod 1 0}}", "file: division by zero"),
        ("{{AddInt .class 1}}", "file: cannot take example.com/gpu for float64"),
        ("{{Int .class}}", "file: cannot take example.com/gpu for int"),
        ("{{Mod 1}}", "file: Mod cannot work with 1 arguments of these types"),
        ("{{range .class}}{{end}}", "file: range cannot go over example.com/gpu"),
        ("{{.Index.name}}", "file: there is no field name in 7"),
    ],
)
def test_values_that_a_function_cannot_work_with(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Template(text, "file").render(VALUES)
    assert said in str(caught.value)


def test_a_template_without_actions_is_constant() -> None:
    assert Template("a: 1 {{/* nothing */}}", "file").is_constant
    assert not Template("a: {{.Index}}", "file").is_constant
    assert {"AddInt", "DivideInt", "Mod", "Int", "JSON", "MultiplyFloat"} <= set(FUNCTIONS)
