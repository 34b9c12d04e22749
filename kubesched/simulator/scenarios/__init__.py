"""Simulations: a world of nodes, pods and events in virtual time, around the real engine.

scenario, arrivals > troupes, enacting > simulation > world, double, agenda > measures;  comparing plays two of them
"""
