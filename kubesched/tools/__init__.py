"""Questions to a cluster, and simulations: one folder a tool, named as its command."""
