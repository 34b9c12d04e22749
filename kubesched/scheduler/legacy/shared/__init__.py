"""What several predicates and priorities of old releases read."""
