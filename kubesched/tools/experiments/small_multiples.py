"""The results of a sweep as small plots: one row for each figure, one column for each scenario and its parameters.

In: results, and the figures to show. Out: HTML with inline SVG, for a file or a notebook, without scripts or external files. A
plot has one line for each configuration: faint dots are seeds, the strong dot is their mean, the bar is the 95 % interval of
the mean. All plots of a figure share a scale. With a baseline, a difference from it is printed if its interval excludes zero.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from kubesched.tools.experiments.results import Estimate, Group, Results

_WIDE, _LINE, _EDGE = 300, 22, 8
_STYLE = """
.sweep{font:14px/1.4 system-ui,sans-serif;color-scheme:light dark}
.sweep table{border-collapse:collapse}
.sweep td,.sweep th{padding:2px 10px 2px 0;text-align:left;vertical-align:top;font-weight:400}
.sweep thead th,.sweep h1,.sweep h2{font-weight:600}.sweep td.number{text-align:right;font-variant-numeric:tabular-nums}
.sweep svg text{font:12px system-ui,sans-serif;fill:currentColor}.sweep .wide{overflow-x:auto}.sweep .note{opacity:.7}
"""


def report_html(title: str, results: Results, figures: Sequence[str]) -> str:
    """Return a whole HTML page."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f'<title>{html.escape(title)} · kubesched</title><link rel="icon" href="data:,"></head>'
        f"<body>{small_multiples(results, figures, title)}</body></html>\n"
    )


def small_multiples(results: Results, figures: Sequence[str], title: str = "") -> str:
    """Return the plots as HTML, for a page or a notebook."""
    columns = list(dict.fromkeys((group[0], *group[2:]) for group in results.groups()))
    n_trials, n_failed = len(results.rows), len(results.errors)
    note = f"{n_trials} trials{f', of which {n_failed} failed' if n_failed else ''}"
    if results.baseline:
        note += f"; in brackets the difference from {results.baseline}, seed by seed, where it is certain"
    names = [path.rpartition(".")[2] for path in results.parameters]

    def title_of(column: Group) -> str:
        return " · ".join([column[0], *(f"{name} {value}" for name, value in zip(names, column[1:], strict=True))])

    head = "".join(f'<th scope="col">{html.escape(title_of(column))}</th>' for column in columns)
    body = "".join(
        f'<tr><th scope="row">{html.escape(figure)}</th>'
        + "".join(f"<td>{plot}</td>" for plot in _plots(results, figure, columns))
        + "</tr>"
        for figure in figures
    )
    heading = f"<h1>{html.escape(title)}</h1>" if title else ""
    return (
        f'<div class="sweep"><style>{_STYLE}</style>{heading}<p class="note">{html.escape(note)}</p>'
        f'<div class="wide"><table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        f"{_failures(results)}</div>"
    )


def _failures(results: Results) -> str:
    items = "".join(
        f"<li>{html.escape('/'.join(results.group(row)))}/seed {row['seed']}: {html.escape(row['error'])}</li>"
        for row in results.errors
    )
    return f"<h2>Trials that failed</h2><ul>{items}</ul>" if items else ""


def _plots(results: Results, figure: str, columns: Sequence[Group]) -> list[str]:
    summary, deltas = results.summary(figure), results.deltas(figure) if results.baseline else {}
    values: dict[Group, list[float]] = {}
    for row in results.rows:
        if isinstance(row.get(figure), (int, float)):
            values.setdefault(results.group(row), []).append(row[figure])
    ends = [value for found in values.values() for value in found]
    for estimate in summary.values():
        if math.isfinite(estimate.half_width):
            ends += [estimate.mean - estimate.half_width, estimate.mean + estimate.half_width]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return [
        _plot(figure, [group for group in summary if (group[0], *group[2:]) == column], summary, deltas, values, low, high)
        for column in columns
    ]


def _plot(
    figure: str,
    groups: Sequence[Group],
    summary: dict[Group, Estimate],
    deltas: dict[Group, Estimate],
    values: dict[Group, list[float]],
    low: float,
    high: float,
) -> str:
    name_wide = 8 * max((len(group[1]) for group in groups), default=0) + _EDGE
    tall, wide = _LINE * (len(groups) + 1), name_wide + _WIDE + 150

    def at(value: float) -> float:
        return round(name_wide + _EDGE + (value - low) / (high - low) * (_WIDE - 2 * _EDGE), 1)

    values_text = ", ".join(f"{group[1]} {summary[group]}" for group in groups)
    drawn = [f'<svg width="{wide}" height="{tall}" role="img" aria-label="{html.escape(f"{figure}: {values_text}")}">']
    for i, group in enumerate(groups):
        estimate, y = summary[group], _LINE * i + _LINE / 2
        drawn.append(f'<text x="0" y="{y + 4}">{html.escape(group[1])}</text>')
        drawn += [f'<circle cx="{at(value)}" cy="{y}" r="2.5" fill="currentColor" opacity=".25"/>' for value in values[group]]
        if math.isfinite(estimate.half_width):
            left, right = at(estimate.mean - estimate.half_width), at(estimate.mean + estimate.half_width)
            drawn.append(f'<line x1="{left}" x2="{right}" y1="{y}" y2="{y}" stroke="#2463a6" stroke-width="3"/>')
        drawn.append(f'<circle cx="{at(estimate.mean)}" cy="{y}" r="4" fill="#2463a6"><title>{estimate}</title></circle>')
        delta = deltas.get(group)
        beside = f" ({delta.mean:+.3g})" if delta is not None and delta.is_other_than_zero else ""
        drawn.append(f'<text x="{name_wide + _WIDE + _EDGE}" y="{y + 4}">{estimate}{beside}</text>')
    y = tall - 6
    drawn.append(f'<text x="{name_wide + _EDGE}" y="{y}" opacity=".7">{low:.4g}</text>')
    drawn.append(f'<text x="{name_wide + _WIDE - _EDGE}" y="{y}" text-anchor="end" opacity=".7">{high:.4g}</text></svg>')
    return "".join(drawn)
