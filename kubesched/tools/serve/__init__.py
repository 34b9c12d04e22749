"""`kubesched serve`: the solver as a service beside any scheduler."""
