"""The scheduler: its configuration, the cluster as columns, plugins, the queue, and the engine."""
