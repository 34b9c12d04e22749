"""The report of a shadow run: counts of placements by agreement, and the differences in full.

In: `Judged`. Out: a document for `-o json` and for the page, and the families of /metrics. All differences are counted, and the
first 1000 are kept.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from kubesched.scheduler.engine import Agreement
from kubesched.tools.shadow.judging import PROMISED, RACE, Judge, Judged

MOST_DIFFERENCES = 1000
UNNAMED = "none"
"""The plugin label of a difference that no plugin explains."""


class Report:
    """Counts judged placements; a collector for Prometheus."""

    def __init__(self, now: float) -> None:
        self.started = now
        self.counts: Counter[tuple[str, Agreement, str]] = Counter()
        """By the scheduler's name, how it compares, and the note."""
        self.by_plugin: Counter[tuple[str, Agreement]] = Counter()
        self.points: Counter[str] = Counter()
        """By plugin, the points by which the chosen nodes score lower than ours."""
        self.control: Counter[str] = Counter()
        """Random choices by result: `level` is as good as ours, `race` passed as a race, `found` is a difference."""
        self.differences: list[dict[str, Any]] = []
        self.judge: Judge | None = None
        """Has the number of placements that were not judged, and the size of the cluster."""

    def add(self, judged: Judged, snapshot: str = "") -> dict[str, Any]:
        """Count a placement; return it as a document."""
        found = judged.comparison
        if judged.is_control:
            passed = found.kind.is_agreement
            self.control["found" if not passed else "race" if judged.note == RACE else "level"] += 1
            return {}
        self.counts[judged.scheduler, found.kind, judged.note] += 1
        document = judged.document() | ({"snapshot": snapshot} if snapshot else {})
        if not found.kind.is_agreement:
            for plugin in found.by_plugin or (found.refused_by or UNNAMED,):
                self.by_plugin[plugin, found.kind] += 1
            self.points.update(found.by_plugin)
            if len(self.differences) < MOST_DIFFERENCES:
                self.differences.append(document)
        return document

    @property
    def n_judged(self) -> int:
        """Return how many placements were judged."""
        return self.counts.total()

    @property
    def n_differences(self) -> int:
        """Return how many placements are differences."""
        return sum(n for (_, kind, _), n in self.counts.items() if not kind.is_agreement)

    def agreement(self) -> dict[str, int]:
        """Return the number of placements for each agreement."""
        found = Counter[str]()
        for (_, kind, _), n in self.counts.items():
            found[kind] += n
        return {str(kind): found[kind] for kind in Agreement}

    def document(self, now: float | None = None) -> dict[str, Any]:
        """Return the report as plain values."""
        judge, n_judged = self.judge, self.n_judged
        notes = Counter[str]()
        for (_, _, note), n in self.counts.items():
            notes[note] += n
        return {
            "seconds": round((time.time() if now is None else now) - self.started, 1),
            "nodes": len(judge.history.store.nodes) if judge is not None else 0,
            "pods": judge.history.store.n_pods if judge is not None else 0,
            "judged": n_judged,
            "agreement": self.agreement(),
            "explainedPercent": round(100 * (n_judged - self.n_differences) / n_judged, 3) if n_judged else None,
            "races": notes[RACE],
            "promised": notes[PROMISED],
            "missed": judge.n_missed if judge is not None else 0,
            "control": self._of_control(),
            "otherSchedulers": dict(judge.skipped) if judge is not None else {},
            "byPlugin": {
                plugin: {str(kind): n for (other, kind), n in self.by_plugin.items() if other == plugin}
                | ({"points": self.points[plugin]} if plugin in self.points else {})
                for plugin in sorted({plugin for plugin, _ in self.by_plugin})
            },
            "differences": self.differences,
        }

    def _of_control(self) -> dict[str, Any]:
        """Return the results of the random choices, and the percentage of the wrong ones that passed as races."""
        wrong = self.control["race"] + self.control["found"]
        return {
            "drawn": self.control.total(),
            "level": self.control["level"],
            "foundOut": self.control["found"],
            "passedAsRaces": self.control["race"],
            "passedPercent": round(100 * self.control["race"] / wrong, 2) if wrong else None,
        }

    def collect(self) -> Iterator[Metric]:
        """Yield the families of /metrics."""
        judge = self.judge

        def counted(name: str, text: str, labels: tuple[str, ...], counts: Iterable[tuple[tuple[str, ...], int]]) -> Metric:
            family = CounterMetricFamily(f"kubesched_shadow_{name}", text, labels=labels)
            for values, n in counts:
                family.add_metric(values, n)
            return family

        text = (
            "Pods that the live scheduler placed, by how our decision compares, and what had to be taken into account for it."
        )
        yield counted("placements", text, ("scheduler", "agreement", "note"), self.counts.items())
        text = "Placements that nothing explains, by the plugins that make the difference."
        yield counted("differences", text, ("plugin", "agreement"), self.by_plugin.items())
        text = "Placements that were made while we were cut off."
        yield CounterMetricFamily("kubesched_shadow_missed", text, judge.n_missed if judge is not None else 0)
        text = "Placements by schedulers that the configuration does not name."
        skipped = judge.skipped if judge is not None else {}
        yield counted("skipped", text, ("scheduler",), (((name,), n) for name, n in skipped.items()))
        is_judging = judge is not None and judge.is_judging
        yield GaugeMetricFamily(
            "kubesched_shadow_judging", "Whether the first lists are in and placements are judged.", is_judging
        )
