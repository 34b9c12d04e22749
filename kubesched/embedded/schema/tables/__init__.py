"""The tables of the embedded API server: text files with a paragraph for each thing, and their reader.

    Name: what there is to say about it; a paragraph
      goes on in lines that are indented

`pod`, `workload`, `cluster` and `policy` have the fields of the types, in the notation of schema/language.py. `words` has the
sentences of `kubectl explain`, `resources` what is served, `columns` the tables of `kubectl get`.
"""

from __future__ import annotations

import re
from importlib import resources


def table(name: str) -> dict[str, str]:
    """Return the paragraphs of a file of this folder by their names."""
    joined = re.sub(r"\n +", " ", "\n".join(lines(name)))
    return {name: body for name, _, body in (line.partition(": ") for line in joined.splitlines())}


def lines(name: str) -> list[str]:
    """Return the lines of a file of this folder, without comments, which begin with #, and empty ones."""
    text = (resources.files(__name__) / f"{name}.txt").read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]
