"""Controllers of workloads: Deployments, StatefulSets, DaemonSets, Jobs and so on."""
