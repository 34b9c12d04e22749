"""What Python's collector is told before the cluster is listed, and after."""

from __future__ import annotations

import gc

from kubesched.scheduler.engine.gc_tuning import THRESHOLDS, await_the_list, spare_the_collector


def test_what_is_listed_is_walked_neither_meanwhile_nor_afterwards() -> None:
    before = gc.get_threshold()
    try:
        await_the_list()
        walked = gc.get_stats()[2]["collections"]
        listed = [[number] for number in range(500_000)]  # at Python's own thresholds some five walks over everything
        assert gc.get_stats()[2]["collections"] == walked
        spare_the_collector()
        assert gc.get_freeze_count() >= len(listed)
        assert gc.get_threshold() == THRESHOLDS, "what comes from now on is walked"
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
