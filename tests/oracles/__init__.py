"""Slow and obvious versions of every node plugin: one pod, one node, one number at a time.

They read the cluster as plain dictionaries, the way it stands on the wire, and share no line with the package: not its
structs, not its parsing of quantities and selectors, not its columns. What they have in common with it is the written
behaviour of kube-scheduler. Nothing here is fast, cached or clever, and nothing should become so.

    cluster     nodes, pods and other objects, and what follows from them for one node
    quantities  amounts       asking  what a pod asks for       selecting  labels, taints, node and pod terms
    plain, resources, locality, interpod, spread                 one class a plugin
    deciding    all of them together: who refuses, what is scored, which text users see
"""
