"""The recorded decisions as JSON: a list with filters, and all decisions about one pod.

In: the ring that the engine records into. Out: routes under /api/decisions. The list is newest first. `before` continues it,
and a client that follows asks for what comes `after` the newest one it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec
from aiohttp import web

from kubesched.scheduler.engine import OUTCOMES, DecisionFilter, DecisionRing, document
from kubesched.server.web.responses import NO_SNIFF

PATH = "/api/decisions"
MOST = 1000
_USUAL = 100
_WORDS = ("namespace", "pod", "node", "outcome", "plugin")
_NUMBERS = ("after", "before", "limit")
_TIMES = ("since", "until")
_HEADERS = {**NO_SNIFF, "Cache-Control": "no-cache, private"}


class BadQuery(ValueError):
    """A query with an error; the text says which part."""


def decision_routes(ring: DecisionRing | None) -> list[web.RouteDef]:
    """Return the routes. Without a ring they answer that nothing is recorded."""

    async def listed(request: web.Request) -> web.Response:
        if ring is None:
            return _nothing_kept()
        try:
            return _answer(page(ring, request.query))
        except BadQuery as error:
            return _answer({"error": str(error)}, 400)

    async def of_pod(request: web.Request) -> web.Response:
        if ring is None:
            return _nothing_kept()
        key = f"{request.match_info['namespace']}/{request.match_info['name']}"
        found = [document(record) for record in islice(ring.of_pod(key), MOST)]
        if not found:
            return _answer({"error": f"no decision about pod {key} is on record"}, 404)
        return _answer({"pod": key, "decisions": found})

    return [web.get(PATH, listed), web.get(f"{PATH}/{{namespace}}/{{name}}", of_pod)]


def page(ring: DecisionRing, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the newest decisions that match a query, without their scores; raise BadQuery."""
    unknown = sorted(set(query) - {*_WORDS, *_NUMBERS, *_TIMES})
    if unknown:
        raise BadQuery(f"unknown parameter {unknown[0]!r}; there are {', '.join((*_WORDS, *_TIMES, *_NUMBERS))}")
    if query.get("outcome", OUTCOMES[0]) not in OUTCOMES:
        raise BadQuery(f"outcome is {query['outcome']!r}, and none of {', '.join(OUTCOMES)}")
    namespace, pod, node, outcome, plugin = (query.get(name, "") for name in _WORDS)
    since, until = (time_of(query[name], name) if name in query else None for name in _TIMES)
    wanted = DecisionFilter(namespace, pod, node, outcome, plugin, since, until, _number(query, "after", -1))
    limit, before = min(_number(query, "limit", _USUAL), MOST), _number(query, "before", ring.next_sequence)
    found: list[dict[str, Any]] = []
    for record in ring.newest_first():
        if record.sequence <= wanted.after or len(found) > limit:
            break
        if record.sequence < before:
            shown = document(record)
            if wanted.takes(shown):
                shown.pop("ranking", None)
                found.append(shown)
    more = len(found) > limit
    return {
        "decisions": found[:limit],
        "next": found[limit - 1]["sequence"] if more and limit else None,
        "newest": ring.next_sequence - 1,
        "oldest": ring.oldest,
        "size": ring.size,
    }


def time_of(text: str, name: str) -> float:
    """Return a time, given in seconds since 1970 or as RFC 3339, in seconds since 1970; raise BadQuery."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+", 1) if "T" in text else text)
    except ValueError:
        raise BadQuery(f"{name} is {text!r}, which is neither seconds since 1970 nor a time as 2026-01-31T12:00:00Z") from None
    return moment.timestamp()


def _number(query: Mapping[str, str], name: str, usual: int) -> int:
    if name not in query:
        return usual
    if not query[name].isascii() or not query[name].isdigit() or len(query[name]) > 18:
        raise BadQuery(f"{name} is {query[name]!r}, which is no whole number")
    return int(query[name])


def _nothing_kept() -> web.Response:
    return _answer({"error": "no decisions are kept here: --decision-records is 0"}, 404)


def _answer(shown: Mapping[str, Any], status: int = 200) -> web.Response:
    answer = web.Response(body=msgspec.json.encode(shown), status=status, content_type="application/json", headers=_HEADERS)
    answer.enable_compression()
    return answer
