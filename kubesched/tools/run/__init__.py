"""The scheduler as a program: kube-scheduler's flags in, one replica out."""
