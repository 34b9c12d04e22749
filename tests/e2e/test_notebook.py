"""The notebook in docs runs from the first cell to the last, in a kernel of its own."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]


def test_the_notebook_of_a_sweep_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    file = ROOT / "docs" / "experiments" / "sweep.ipynb"
    book = nbformat.read(file, as_version=4)
    NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(file.parent)}}).execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    drawn = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert len(drawn) == 1 and drawn[0].count("<svg") == 4
    assert "node='large'" in outputs[-1].data["text/plain"]
