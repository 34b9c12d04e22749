"""The embedded API server: enough of a Kubernetes control plane to see, test and simulate the scheduler in one process.

    http, printing  >  store  >  verbs  >  admission, validation  >  schema, storage

`ApiServer` (http/server.py) starts and stops it; `ObjectStore` (store.py) is the same API without HTTP. Objects are plain
dictionaries as they stand in JSON. One thread writes: the event loop, or the test that drives the store in virtual time.
"""

from kubesched.embedded.clock import ManualClock, RealClock, ServerClock
from kubesched.embedded.http.server import ApiServer
from kubesched.embedded.store import ObjectStore

__all__ = ["ApiServer", "ManualClock", "ObjectStore", "RealClock", "ServerClock"]
