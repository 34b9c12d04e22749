"""The client: how the scheduler reaches a real API server.

    credentials  >  transport  >  connection  >  discovery, reflector, writer, recorder, locks  >  reflectors, leader_election

`find_credentials` and `connect` (connection.py) come first; `Reflectors` (reflectors.py) delivers the cluster to a sink;
`Writer` carries decisions out, `Broadcaster` tells people, `LeaderElector` decides who may. Importing this room
is cheap: what loads credentials is imported when a cluster is reached.
"""

from kubesched.kube.client.access_reviews import Reviews
from kubesched.kube.client.api_errors import advice
from kubesched.kube.client.connection import MERGE_PATCH, Connection, Observers, connect
from kubesched.kube.client.credentials import (
    CredentialSource,
    KubeconfigSource,
    default_kubeconfig,
    delegated_credentials,
    find_credentials,
    kubeconfig_files,
    kubectl_credentials,
)
from kubesched.kube.client.informers.discovery import Served, discover
from kubesched.kube.client.informers.reading import get_object, list_objects
from kubesched.kube.client.informers.reflector import Reflector, Sink
from kubesched.kube.client.informers.reflectors import Reflectors
from kubesched.kube.client.informers.resources import Watched, collection_path, row_of, watch_set
from kubesched.kube.client.leases.fencing import FencedConnection, FencedLock, LeaseLost
from kubesched.kube.client.leases.leader_election import Callbacks, LeaderElector, Timing
from kubesched.kube.client.leases.lease_candidate import LeaseCandidate
from kubesched.kube.client.leases.locks import LOCKS, make_identity
from kubesched.kube.client.scheduler_client import (
    SchedulerAddress,
    ask_about_pod,
    ask_for_configuration,
    ask_for_decisions,
    ask_for_decisions_about,
)
from kubesched.kube.client.timing import SYSTEM_CHANCE, SYSTEM_CLOCK, Backoff, Chance, ClientClock, LogThrottle
from kubesched.kube.client.writes.api_dispatcher import ApiDispatcher
from kubesched.kube.client.writes.recorder import CORE_V1, Broadcaster, Recorder
from kubesched.kube.client.writes.writer import Writer
