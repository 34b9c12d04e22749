"""Command-line flags: kube-scheduler's, ours, and those of old releases; parsed, checked, laid over the file."""
