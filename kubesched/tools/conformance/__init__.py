"""Golden cases: the same cluster and pod, compared with what kube-scheduler decided."""
