"""Following the API server: lists and watches of every kind the scheduler reads, decoded into our structs."""
