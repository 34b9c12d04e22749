"""The scheduler as a program: command-line options, one replica from start to end, and its HTTP port."""
