"""The embedded API server: enough of a Kubernetes control plane to see, test and simulate the scheduler in one process.

    http, store  >  reading, writing, deleting, subresources  >  admission, defaulting, validation, patching
                 >  context  >  storage  >  watch, journal

`ApiServer` (server.py) starts and stops it; `Store` (store.py) is the same API without HTTP. Objects are plain
dictionaries as they stand in JSON. One thread writes: the event loop, or whoever drives the store in virtual time.
"""

from kubesched.apiserver.clock import Clock, RealClock, VirtualClock
from kubesched.apiserver.server import ApiServer
from kubesched.apiserver.store import Store

__all__ = ["ApiServer", "Clock", "RealClock", "Store", "VirtualClock"]
