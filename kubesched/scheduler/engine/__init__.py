"""The engine: takes in what arrives, decides pod after pod, and acts on each decision."""
