"""The embedded API server: enough of a Kubernetes control plane to see, test and simulate the scheduler in one process.

    http, store  >  reading, writing, deletion, subresources  >  admission, defaulting, validation, patching
                 >  context  >  storage  >  watch, write_ahead_log

`ApiServer` (server.py) starts and stops it; `ObjectStore` (store.py) is the same API without HTTP. Objects are plain
dictionaries as they stand in JSON. One thread writes: the event loop, or whoever drives the store in virtual time.
"""

from kubesched.embedded.clock import ManualClock, RealClock, ServerClock
from kubesched.embedded.http.server import ApiServer
from kubesched.embedded.store import ObjectStore

__all__ = ["ApiServer", "ManualClock", "ObjectStore", "RealClock", "ServerClock"]
