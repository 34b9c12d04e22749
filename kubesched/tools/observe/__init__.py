"""`kubesched observe`: everything that only looks, in one process beside a stock kube-scheduler."""
