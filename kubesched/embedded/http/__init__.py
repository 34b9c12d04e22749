"""The HTTP side of the embedded API server: paths, requests, answers, watches, TLS and access."""
