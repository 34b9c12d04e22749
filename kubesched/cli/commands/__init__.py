"""What each command takes: its words, its help, and where the work is. One file a command, loaded only when it is called.

Nothing here imports more than click: `--help` and the completion of a shell answer before anybody has lost patience, and
NumPy, aiohttp and the plugins are imported when there is work for them.
"""
