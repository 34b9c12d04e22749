"""The solver: a cluster in memory that answers where pods fit and what would happen if it were changed.

    cluster = Cluster.from_objects(objects)
    cluster.fits(pod)
    with cluster.what_if() as world:
        world.add_nodes(template, 12)
        result = world.place(pods)

It has the engine of `run`, and no scheduler of its own.
"""

from kubesched.solver.asynchronous import AsyncCluster, AsyncWorld
from kubesched.solver.cheapest import NewNode, NewNodes, NodeTemplate
from kubesched.solver.cluster import Cluster
from kubesched.solver.errors import BadObject, UnknownObject, WorldError
from kubesched.solver.results import Fits, NodeAnswer, NodeTable, PlacedPod, Placement, Room, StoppedBy, Victim
from kubesched.solver.world import World

__all__ = [
    "AsyncCluster",
    "AsyncWorld",
    "BadObject",
    "Cluster",
    "Fits",
    "NewNode",
    "NewNodes",
    "NodeAnswer",
    "NodeTable",
    "NodeTemplate",
    "PlacedPod",
    "Placement",
    "Room",
    "StoppedBy",
    "UnknownObject",
    "Victim",
    "World",
    "WorldError",
]
