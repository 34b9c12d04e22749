"""Command-line flags: kube-scheduler's, our own, and those of old releases; parsed, checked, and applied over the file."""
