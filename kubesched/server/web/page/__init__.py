"""The web page and its JSON: nodes, queue, decisions, history."""
