"""The client: how the scheduler reaches a real API server.

    credentials  >  transport  >  connection  >  discovery, reflector, writer, recorder, locks  >  reflectors, leader_election

`find_credentials` and `connect` (connection.py) come first; `Reflectors` (reflectors.py) delivers the cluster to a sink;
`Writer` carries decisions out, `Broadcaster` tells people, `LeaderElector` decides who may. Importing this room
is cheap: what loads credentials is imported when a cluster is reached.
"""
