"""The queue's tests share one small world."""

import pytest
from queue_fakes import World


@pytest.fixture
def world():
    return World()
