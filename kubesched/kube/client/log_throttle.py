"""Saying what is wrong without saying it at every try: at once when it is new, then ever more rarely while it lasts.

In: one line of text a try. Out: whether it is worth a line in the log. A failure that lasts is told again after half a
minute and then after twice as long each time, up to once in ten minutes, so that a log's end still shows it.
"""

from __future__ import annotations

from kubesched.kube.client.timing import ClientClock

FIRST_REPETITION_SECONDS = 30.0
LONGEST_SILENCE_SECONDS = 600.0


class LogThrottle:
    """What one part of the program has to complain about; one thing at a time."""

    def __init__(self, clock: ClientClock) -> None:
        self.current = ""
        self._clock = clock
        self._again_at = 0.0
        self._pause = FIRST_REPETITION_SECONDS

    def is_worth_saying(self, text: str) -> bool:
        """Take notice of a complaint, and return whether to log it now."""
        now = self._clock.monotonic()
        if text != self.current:
            self.current = text
            self._pause = FIRST_REPETITION_SECONDS
        elif now < self._again_at:
            return False
        else:
            self._pause = min(self._pause * 2, LONGEST_SILENCE_SECONDS)
        self._again_at = now + self._pause
        return True

    def settle(self) -> bool:
        """Forget it, because all is well; return whether there was anything to forget."""
        had_any, self.current = bool(self.current), ""
        return had_any
