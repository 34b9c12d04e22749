"""The notebooks in docs run from the first cell to the last, each in a kernel of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]


def outputs_of(name: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Run a notebook, and return what its cells print."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    file = ROOT / "docs" / "experiments" / name
    book = nbformat.read(file, as_version=4)
    NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(file.parent)}}).execute()
    return [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]


def test_the_notebook_of_a_sweep_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = outputs_of("sweep.ipynb", monkeypatch)
    drawn = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert len(drawn) == 1 and drawn[0].count("<svg") == 4
    assert "node='large'" in outputs[-1].data["text/plain"]


def test_the_notebook_of_what_if_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    fits, rows, could_go, gone, printed, _, counts = outputs_of("what-if.ipynb", monkeypatch)
    assert "6 of 6 nodes" in fits.data["text/plain"] and "'fits': True" in rows.data["text/plain"]
    assert could_go.data["text/plain"].count("node-") == 6 and gone.data["text/plain"].count("node-") == 3
    assert "12 placed, 28 unplaced" in printed.text
    assert counts.data["text/plain"] == "{'large': 3, 'small': 2}"
