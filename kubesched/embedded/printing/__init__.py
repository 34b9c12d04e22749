"""Tables for `kubectl get`, and the usage that `kubectl top` shows."""
