"""Profiles as output: folded stacks, a table, a flame graph, a trace, and the file of `go tool pprof`.

In: a `Profile`. Out: text or bytes. The flame graph is one SVG file without scripts; a box shows its name and share when
pointed at.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from kubesched.server.web.profiling.stacks import Frame, Profile, Stack
from kubesched.telemetry.protobuf import bytes_field, uint_field, varint

_WIDTH, _ROW, _CHARACTER = 1200, 18, 6.6
_SCALES = {"nanoseconds": (1e-6, "ms"), "bytes": (1 / 1024, "KiB"), "count": (1.0, "")}


def collapsed(profile: Profile) -> str:
    """Return one line for each stack, the format of flame graph tools."""
    folded: dict[str, int] = {}
    for stack, weights in profile.stacks.items():
        line = ";".join(frame.function for frame in stack)
        folded[line] = folded.get(line, 0) + weights[-1]
    return "".join(f"{line} {weight}\n" for line, weight in sorted(folded.items()))


def table(profile: Profile, most: int = 60) -> str:
    """Return the functions that used most: `flat` is their own share, `cum` includes all that they called."""
    flat: dict[str, int] = {}
    cumulative: dict[str, int] = {}
    for stack, weights in profile.stacks.items():
        weight = weights[-1]
        if stack:
            flat[stack[-1].function] = flat.get(stack[-1].function, 0) + weight
        for function in {frame.function for frame in stack}:
            cumulative[function] = cumulative.get(function, 0) + weight
    name, unit = profile.units[-1]
    total = profile.total
    lines = [f"Type: {name}", f"Duration: {profile.seconds:.2f} s, total: {_amount(total, unit)}"]
    if profile.note:
        lines.append(profile.note)
    lines.append(f"{'flat':>14} {'flat%':>7} {'cum':>14} {'cum%':>7}")
    for function, weight in sorted(cumulative.items(), key=lambda item: (-flat.get(item[0], 0), -item[1]))[:most]:
        own = flat.get(function, 0)
        mine, all_of_it = f"{_amount(own, unit):>14} {_share(own, total):>7}", f"{_amount(weight, unit):>14}"
        lines.append(f"{mine} {all_of_it} {_share(weight, total):>7}  {function}")
    return "\n".join(lines) + "\n"


def flame_graph(profile: Profile, title: str) -> str:
    """Return an SVG with a box for each function, as wide as its share, above its caller."""
    root = _Box("all", profile.total)
    for stack, weights in profile.stacks.items():
        root.grow(stack, weights[-1])
    height = (root.depth() + 3) * _ROW
    unit = profile.units[-1][1]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="monospace" font-size="11">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="8" y="14">{escape(title)}: {_amount(profile.total, unit)} in {profile.seconds:.1f} s</text>',
    ]
    if profile.total:
        parts += root.draw(0.0, float(_WIDTH), height - _ROW, profile.total, unit)
    else:
        parts.append('<text x="8" y="32">nothing was seen</text>')
    return "\n".join([*parts, "</svg>\n"])


class _Box:
    """A function under one caller."""

    __slots__ = ("children", "name", "weight")

    def __init__(self, name: str, weight: int = 0) -> None:
        self.name = name
        self.weight = weight
        self.children: dict[str, _Box] = {}

    def grow(self, stack: Stack, weight: int) -> None:
        """Add a stack to the box and those above it."""
        box = self
        for frame in stack:
            box = box.children.setdefault(frame.function, _Box(frame.function))
            box.weight += weight

    def depth(self) -> int:
        deepest, level = 0, [self]
        while level:
            deepest += 1
            level = [child for box in level for child in box.children.values()]
        return deepest

    def draw(self, x: float, width: float, y: int, total: int, unit: str) -> Iterator[str]:
        label = escape(f"{self.name}: {_amount(self.weight, unit)}, {_share(self.weight, total)}", quote=True)
        hue = zlib.crc32(self.name.encode()) % 40 + 15
        yield (
            f'<g><title>{label}</title><rect x="{x:.2f}" y="{y}" width="{max(width - 0.4, 0.1):.2f}" '
            f'height="{_ROW - 1}" fill="hsl({hue},75%,68%)"/>'
        )
        fits = int(width / _CHARACTER) - 1
        if fits > 2:
            short = self.name if len(self.name) <= fits else f"..{self.name[-(fits - 2) :]}"
            yield f'<text x="{x + 2:.2f}" y="{y + 13}">{escape(short)}</text>'
        yield "</g>"
        for child in sorted(self.children.values(), key=lambda box: box.name):
            share = child.weight / self.weight * width if self.weight else 0.0
            if share >= 0.2:
                yield from child.draw(x, share, y - _ROW, total, unit)
            x += share


def trace_events(seen: Sequence[tuple[float, Stack]]) -> str:
    """Return a timeline in the trace event format of Perfetto and chrome://tracing."""
    events: list[dict[str, object]] = []
    opened: list[Frame] = []
    for second, stack in seen:
        shared = 0
        while shared < min(len(opened), len(stack)) and opened[shared] == stack[shared]:
            shared += 1
        for frame in reversed(opened[shared:]):
            events.append(_event("E", frame, second))
        for frame in stack[shared:]:
            events.append(_event("B", frame, second))
        opened = list(stack)
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})


def _event(phase: str, frame: Frame, second: float) -> dict[str, object]:
    return {"name": frame.function, "cat": frame.file, "ph": phase, "ts": round(second * 1e6), "pid": 1, "tid": 1}


def pprof(profile: Profile) -> bytes:
    """Return the profile in the format of `go tool pprof`: a gzipped protocol buffer.

    Functions and files are in it by name, so pprof does not ask for symbols. Texts, functions and locations are numbered and
    referred to by number.
    """
    strings: dict[str, int] = {"": 0}
    functions: dict[tuple[str, str], int] = {}
    locations: dict[Frame, int] = {}

    def text(value: str) -> int:
        return strings.setdefault(value, len(strings))

    def location(frame: Frame) -> int:
        functions.setdefault((frame.function, frame.file), len(functions) + 1)
        return locations.setdefault(frame, len(locations) + 1)

    body = bytearray()
    for name, unit in profile.units:
        body += bytes_field(1, uint_field(1, text(name)) + uint_field(2, text(unit)))
    for stack, weights in profile.stacks.items():
        ids = _packed(1, [location(frame) for frame in reversed(stack)])
        body += bytes_field(2, ids + _packed(2, weights))
    for frame, number in locations.items():
        line = uint_field(1, functions[frame.function, frame.file]) + uint_field(2, frame.line)
        body += bytes_field(4, uint_field(1, number) + bytes_field(4, line))
    for (function, file), number in functions.items():
        named = text(function)
        body += bytes_field(5, uint_field(1, number) + uint_field(2, named) + uint_field(3, named) + uint_field(4, text(file)))
    kind = bytes_field(11, uint_field(1, text(profile.units[-1][0])) + uint_field(2, text(profile.units[-1][1])))
    for value in strings:
        body += bytes_field(6, value.encode())
    body += uint_field(9, int(profile.started * 1e9)) + uint_field(10, int(profile.seconds * 1e9))
    body += kind + uint_field(12, profile.period)
    return gzip.compress(bytes(body))


def _packed(field: int, values: Iterable[int]) -> bytes:
    return bytes_field(field, b"".join(map(varint, values)))


def _amount(weight: int, unit: str) -> str:
    scale, suffix = _SCALES.get(unit, (1.0, unit))
    return f"{weight * scale:.1f}{suffix}" if scale != 1.0 else f"{weight}{suffix}"


def _share(weight: int, total: int) -> str:
    return f"{100 * weight / total:.1f}%" if total else "0.0%"
