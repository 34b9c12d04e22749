"""What holds for all tests: how long hypothesis may take is the machine's affair, not the test's."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# On a busy machine drawing the first inputs takes seconds, and hypothesis fails the test for that alone.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
