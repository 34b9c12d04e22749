"""Why a pod waits, or is where it is: asked of a cluster that was read, or of a running scheduler."""
