"""Simulations: a cluster of nodes, pods and events in virtual time, scheduled by the real engine.

scenario, arrivals > workload_runner, build > simulation > simulated_cluster, fake_api, agenda > measures;
compare plays two of them
"""
