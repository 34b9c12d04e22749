"""What controllers share: a base class, a queue of keys, the pods they own, events and the pace of the cluster."""
