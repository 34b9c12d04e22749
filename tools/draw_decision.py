"""Draw a decision: which plugin refuses which node, and what the scores of the others are made of.

In: manifests of a cluster and the name of a pod in it; the engine decides. Out: an SVG file.
    python tools/draw_decision.py docs/examples/decision.yaml default/web-2 docs/decision.svg
A test draws it again and compares, so the picture in the README is that of a decision as it is made today.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import yaml

ROOT = Path(__file__).parents[1]
LEFT, TOP, COLUMN, ROW, BAR = 250, 62, 150, 26, 120
COLOURS = ("#2463a6", "#3d9970", "#c77c11", "#8a4fa3", "#b0413e", "#4a6572")
REFUSED, INK, FAINT = "#b0413e", "#1c2430", "#8b93a1"


def decide(file: str, pod: str) -> dict[str, Any]:
    """Return what `kubesched why -o json` says."""
    program = "from kubesched.cli import main; main()"
    words = [sys.executable, "-c", program, "why", pod, "--snapshot", file, "-o", "json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def draw(told: dict[str, Any], nodes: list[str]) -> str:
    """Return the picture: a column a node, a row a plugin."""
    ranking = {row["node"]: row for row in told["ranking"]}
    scoring = list(next(iter(ranking.values()))["byPlugin"])
    wide = LEFT + COLUMN * len(nodes) + 10
    lines = [_text(12, 24, f"pod {told['pod']}", weight="bold")]
    lines += [_text(LEFT + COLUMN * i + BAR / 2, 24, name, anchor="middle", weight="bold") for i, name in enumerate(nodes)]
    y = TOP
    lines.append(_text(12, y - 12, "Filter", colour=FAINT))
    for refusal in told["refusals"]:
        lines.append(_text(12, y + 14, refusal["plugin"]))
        for i, name in enumerate(nodes):
            x = LEFT + COLUMN * i
            if name in refusal["examples"]:
                lines.append(f'<rect x="{x}" y="{y + 2}" width="{BAR}" height="16" fill="{REFUSED}" opacity="0.15"/>')
                lines.append(_text(x + BAR / 2, y + 14, _short(refusal["reason"]), anchor="middle", colour=REFUSED))
        y += ROW
    y += 30
    lines.append(_text(12, y - 12, "Score, times its weight", colour=FAINT))
    most = max(max(row["byPlugin"].values()) for row in ranking.values()) or 1
    for number, plugin in enumerate(scoring):
        lines.append(_text(12, y + 14, plugin))
        for i, name in enumerate(nodes):
            if name in ranking:
                score, x = ranking[name]["byPlugin"][plugin], LEFT + COLUMN * i
                length = round((BAR - 36) * score / most, 1)
                lines.append(
                    f'<rect x="{x}" y="{y + 2}" width="{length}" height="16" fill="{COLOURS[number % len(COLOURS)]}"/>'
                )
                lines.append(_text(x + length + 6, y + 14, str(score)))
        y += ROW
    y += 8
    lines.append(f'<line x1="12" x2="{wide - 10}" y1="{y}" y2="{y}" stroke="{FAINT}"/>')
    lines.append(_text(12, y + 22, "total", weight="bold"))
    for i, name in enumerate(nodes):
        if name in ranking:
            is_best = name == told["wouldGoTo"]
            text = f"{ranking[name]['total']}{'  chosen' if is_best else ''}"
            lines.append(_text(LEFT + COLUMN * i, y + 22, text, weight="bold" if is_best else "normal"))
    high = y + 36
    label = f"one decision: {told['pod']} goes to {told['wouldGoTo']}"
    size = f'viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="13"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(label)}">'
    return "\n".join([head, f'<rect width="{wide}" height="{high}" fill="#fff"/>', *lines, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, *, anchor: str = "start", colour: str = INK, weight: str = "normal") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}" font-weight="{weight}">{escape(text)}</text>'


def _short(reason: str) -> str:
    return reason.removeprefix("node(s) ").removeprefix("had ")


def drawn(file: str, pod: str) -> str:
    """Decide about a pod and draw it."""
    objects = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))["items"]
    return draw(decide(file, pod), [obj["metadata"]["name"] for obj in objects if obj["kind"] == "Node"])


if __name__ == "__main__":
    Path(sys.argv[3]).write_text(drawn(sys.argv[1], sys.argv[2]), encoding="utf-8")
