"""Values from the wire: the objects that the scheduler reads and writes, and what can be said of them alone.

The structs live in one module an API group; `quantity`, `matching` and `requests` hold the arithmetic and the
questions, `codec` turns bytes into objects and back. The main names are offered here.
"""

from kubesched.kube.api.codec import convert, decode, decode_as, encode, overlay, to_dict
from kubesched.kube.api.core import Binding, Namespace, ReplicationController, Service
from kubesched.kube.api.kinds import INFO, KIND_TABLE, KINDS, KindInfo
from kubesched.kube.api.meta import LabelSelector, ObjectMeta, ObjectReference, OwnerReference, TopLevel, Wire
from kubesched.kube.api.node import Node, Taint
from kubesched.kube.api.pod import Container, Pod, Toleration

__all__ = [
    "INFO",
    "KINDS",
    "KIND_TABLE",
    "Binding",
    "Container",
    "KindInfo",
    "LabelSelector",
    "Namespace",
    "Node",
    "ObjectMeta",
    "ObjectReference",
    "OwnerReference",
    "Pod",
    "ReplicationController",
    "Service",
    "Taint",
    "Toleration",
    "TopLevel",
    "Wire",
    "convert",
    "decode",
    "decode_as",
    "encode",
    "overlay",
    "to_dict",
]
