"""The page about simulating: its example runs and says what the page says, its scenario is the example's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[4] / "docs"
PAGE = (DOCS / "how-to" / "simulate.md").read_text(encoding="utf-8")


def test_the_example_in_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "docs/how-to/simulate.md", "exec"), {"__name__": "example"})
    assert capsys.readouterr().out.splitlines() == [
        "Decided(at=0.0, pod='default/job-0', node='n8', note='')",
        "100 9.243697",
        "100 2.663866",
        "n8 1190.0",
    ]
    for said in ("100 9.243697, then 100 2.663866", "node='n8'", "n8 1190.0"):
        assert said in code


def test_the_scenario_on_the_page_is_the_one_in_the_examples() -> None:
    assert f"```yaml\n{(DOCS / 'examples' / 'shop.yaml').read_text(encoding='utf-8')}```" in PAGE
