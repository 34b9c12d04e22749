"""The client: how the scheduler reaches a real API server.

    credentials  >  transport  >  connection  >  discovery, reflector, writer, recorder, locks  >  watching, leading

`find_credentials` and `connect` (connection.py) come first; `Watching` (watching.py) delivers the cluster to a sink;
`Writer` carries decisions out, `Broadcaster` tells people, `Elector` (leading.py) decides who may. Importing this room
is cheap: what loads credentials is imported when a cluster is reached.
"""
