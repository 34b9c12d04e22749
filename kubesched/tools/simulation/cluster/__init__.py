"""The simulated cluster: nodes, controllers, an autoscaler and an API server, in virtual time."""
