"""What preemption plugins use: nodes imagined without some pods, and preemptions under way."""
