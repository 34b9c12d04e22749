"""Makes the room's fakes importable from its tests, and builds one small world for each."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from queue_fakes import World


@pytest.fixture
def world():
    return World()
