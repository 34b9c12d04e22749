"""Two files of `make bench` side by side.

usage: bench/compare.py BEFORE.json AFTER.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: bench/compare.py BEFORE.json AFTER.json")
    before, after = (json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:])
    old = {(row["kind"], row["nodes"], row["pods"]): row for row in before["rows"]}
    table = Table(box=None)
    for title in ("kind", "nodes", "pods/s before", "after", "ratio", "p99 before", "after", "RSS before", "after"):
        table.add_column(title, justify="left" if title == "kind" else "right")
    for row in after["rows"]:
        was = old.get((row["kind"], row["nodes"], row["pods"]))
        if was is None:
            continue
        ratio = row["pods_per_s"] / was["pods_per_s"] if was["pods_per_s"] else 0.0
        table.add_row(
            row["kind"],
            f"{row['nodes']:,}",
            f"{was['pods_per_s']:,.0f}",
            f"{row['pods_per_s']:,.0f}",
            f"{ratio:.2f}",
            f"{was['p99_us']:,.0f} us",
            f"{row['p99_us']:,.0f} us",
            f"{was['rss_mib']} MiB",
            f"{row['rss_mib']} MiB",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
