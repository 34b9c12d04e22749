"""Reviews: questions to the API server about callers, with a cache of the answers.

In: a `Reviewer` that creates reviews. Out: its answers. A question is asked once, however many requests wait for it, and its
answer is kept as long as the flags say. A server that fails is asked again, five times at most.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from kubesched.errors import SchedulerError, ServerFault, TooManyRequests, Unreachable

Review = Mapping[str, Any]
Answer = TypeVar("Answer")

TRIES = 5  # of one review
FIRST_PAUSE_SECONDS = 0.5
PAUSE_FACTOR = 1.5
JITTER = 0.2  # of each pause, so that replicas do not retry in step
TIMEOUT_SECONDS = 10.0
MOST_CACHED = 4096


class Reviewer(Protocol):
    """The part of the API that answers questions about callers. Failures are `SchedulerError`s."""

    async def create_token_review(self, review: Review) -> Review:
        """Create an authentication.k8s.io/v1 TokenReview and return it with its status."""
        ...

    async def create_subject_access_review(self, review: Review) -> Review:
        """Create an authorization.k8s.io/v1 SubjectAccessReview and return it with its status."""
        ...


async def insist(
    create: Callable[[Review], Awaitable[Review]],
    review: Review,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Review:
    """Return the status of a review; retry while the server fails, then raise its last error."""
    pause = FIRST_PAUSE_SECONDS
    for left in reversed(range(TRIES)):
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                answered = await create(review)
            status: Review = answered.get("status") or {}
            return status
        except TimeoutError as error:
            if not left:
                raise Unreachable(f"no answer to a {review['kind']} within {TIMEOUT_SECONDS:g} s") from error
        except (ServerFault, TooManyRequests, Unreachable):
            if not left:
                raise
        await sleep(pause * (1 + JITTER * random.random()))
        pause *= PAUSE_FACTOR
    raise SchedulerError("unreachable: the last try returns or raises")


class ReviewCache(Generic[Answer]):
    """A cache of answers, each with its own expiry; the oldest beyond 4,096 are dropped."""

    def __init__(self, now: Callable[[], float], most: int = MOST_CACHED) -> None:
        self._now = now
        self._most = most
        self._kept: OrderedDict[Hashable, tuple[float, Answer]] = OrderedDict()
        self._asking: dict[Hashable, asyncio.Task[Answer]] = {}

    async def get(self, question: Hashable, ask: Callable[[], Awaitable[tuple[Answer, float]]]) -> Answer:
        """Return the cached answer, or that of `ask`, which also returns for how many seconds it holds."""
        kept = self._kept.get(question)
        if kept is not None and kept[0] > self._now():
            self._kept.move_to_end(question)
            return kept[1]
        task = self._asking.get(question)
        if task is None:
            task = self._asking[question] = asyncio.ensure_future(self._ask(question, ask))
            task.add_done_callback(lambda _: self._asking.pop(question, None))
        # Shielded: one caller that goes away does not take the answer from the others who wait for it.
        return await asyncio.shield(task)

    async def _ask(self, question: Hashable, ask: Callable[[], Awaitable[tuple[Answer, float]]]) -> Answer:
        """Ask, and cache the answer."""
        answer, seconds = await ask()
        if seconds > 0:
            self._kept[question] = (self._now() + seconds, answer)
            self._kept.move_to_end(question)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return answer
