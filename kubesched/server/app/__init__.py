"""The scheduler as a program: the only room that knows every other. It builds, connects, starts and stops the parts."""

from kubesched.server.app.scheduler import Scheduler
from kubesched.server.app.serving import access_of
from kubesched.server.app.signals import stop_on_signals
from kubesched.server.app.wiring import DECISION_RECORDS, Face, Wiring

__all__ = ["DECISION_RECORDS", "Face", "Scheduler", "Wiring", "access_of", "stop_on_signals"]
