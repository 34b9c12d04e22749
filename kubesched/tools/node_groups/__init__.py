"""Nodes that do not exist yet: groups that may grow, which of them pods that wait need, which nodes could go.

reading > sizes > estimate, consolidation
"""
