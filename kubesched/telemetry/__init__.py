"""Telemetry: metrics and logs. It knows none of the other rooms; they hand it names and numbers.

metrics = Metrics(MetricsSettings(...)); exposing.register(metrics, registry); exposing.exposition(registry)
log = logger(__name__); configure(settings); set_verbosity(4)
"""

from kubesched.telemetry.logs import Logger, configure, logger, set_verbosity, verbosity
from kubesched.telemetry.metrics import Metrics, MetricsSettings
from kubesched.telemetry.reporting import Reporter

__all__ = [
    "Logger",
    "Metrics",
    "MetricsSettings",
    "Reporter",
    "configure",
    "logger",
    "set_verbosity",
    "verbosity",
]
