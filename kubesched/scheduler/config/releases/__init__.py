"""What differs between releases of Kubernetes: feature gates, and behaviour that no gate switches."""
