"""What an extender answers to a binding: only a result without an error is one, as Go decodes it into its type."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.errors import SchedulerError
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.config import Extender as Given
from kubesched.scheduler.engine.deciding.extenders import Extender
from kubesched.testing import pod

ANSWERS = [
    ("a result without an error", b'{"Error": ""}', ""),
    ("a result in other letters", b'{"error": null}', ""),
    ("no result in particular", b"null", ""),
    ("an error", b'{"Error": "no"}', "no"),
    ("a list", b'[{"Host": 3}, null]', 'extender "http://x": the result of a binding is wanted, found [{"Host":3},null]'),
    ("a text", b'"bound"', 'extender "http://x": the result of a binding is wanted, found "bound"'),
    ("an error that is no text", b'{"Error": 3}', 'extender "http://x": the result of a binding is wanted, found {"Error":3}'),
    ("nothing", b"", 'extender "http://x": the answer to bind is empty'),
]


class Answering:
    """Answers the same to everything."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def post(self, url: str, body: bytes, extender: Any) -> bytes:
        return self._answer


@pytest.mark.parametrize(("answer", "problem"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
def test_what_counts_as_bound(answer: bytes, problem: str) -> None:
    extender = Extender(Given(url_prefix="http://x", bind_verb="bind"), Answering(answer))
    try:
        extender.bind(Store().view(pod()), "a")
        found = ""
    except SchedulerError as error:
        found = str(error)
    assert found == problem
