"""Rebalancing: a bounded list of moves towards a goal, each of them proven before it is made."""
