"""One small world for each test."""

import pytest
from queue_fakes import World


@pytest.fixture
def world():
    return World()
