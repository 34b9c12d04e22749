"""Reading configuration files: YAML or JSON to a checked tree, with kube-scheduler's error texts."""
