"""How a decision's time grows with the cluster: basic pods on more and more nodes, and a plot of it.

usage: bench/growth.py [--pods 5000] [--init-per-node 0] [--svg docs/growth.svg] [NODES ...]

Each size runs in a process of its own. Both axes of the plot are logarithmic.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

from run import HERE, machine, measure

SIZES = (500, 1000, 5000, 10000, 50000, 100000)
WIDTH, HEIGHT, MARGIN = 640, 320, 56


def plot(rows: list[dict[str, object]]) -> str:
    """Return the median decision over the number of nodes as an SVG picture."""
    xs = [math.log10(float(str(row["nodes"]))) for row in rows]
    ys = [math.log10(float(str(row["p50_us"]))) for row in rows]
    low_x, high_x = min(xs), max(xs)
    low_y, high_y = math.floor(min(ys)), math.ceil(max(ys))

    def place(x: float, y: float) -> tuple[float, float]:
        across = MARGIN + (x - low_x) / ((high_x - low_x) or 1) * (WIDTH - 2 * MARGIN)
        up = HEIGHT - MARGIN - (y - low_y) / ((high_y - low_y) or 1) * (HEIGHT - 2 * MARGIN)
        return across, up

    points = [place(x, y) for x, y in zip(xs, ys, strict=True)]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12" role="img" aria-label="median microseconds a decision over the number of nodes">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for power in range(low_y, high_y + 1):
        _, up = place(low_x, power)
        parts.append(
            f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{up:.0f}" y2="{up:.0f}" stroke="#ddd"/>'
            f'<text x="{MARGIN - 8}" y="{up + 4:.0f}" text-anchor="end">{10**power:,} us</text>'
        )
    for row, (across, up) in zip(rows, points, strict=True):
        parts.append(
            f'<circle cx="{across:.0f}" cy="{up:.0f}" r="4" fill="#2463a6"/>'
            f'<text x="{across:.0f}" y="{up - 10:.0f}" text-anchor="middle">{row["p50_us"]:,.0f}</text>'
            f'<text x="{across:.0f}" y="{HEIGHT - MARGIN + 20}" text-anchor="middle">{row["nodes"]:,}</text>'
        )
    line = " ".join(f"{across:.0f},{up:.0f}" for across, up in points)
    parts += [
        f'<polyline points="{line}" fill="none" stroke="#2463a6" stroke-width="2"/>',
        f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT - 12}" text-anchor="middle">nodes</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--init-per-node", type=int, default=0)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--out", type=Path, default=HERE / "out" / "growth.json")
    given = parser.parse_args()
    rows = []
    for nodes in given.sizes:
        print(f"{nodes:,} nodes ...", file=sys.stderr, flush=True)
        row = measure("basic", nodes, nodes * given.init_per_node, given.pods, 0)
        print(f"{row['pods_per_s']:,.0f} pods/s, median {row['p50_us']} us, p99 {row['p99_us']} us, {row['rss_mib']} MiB")
        rows.append(row)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")
    if given.svg:
        given.svg.write_text(plot(rows))


if __name__ == "__main__":
    main()
