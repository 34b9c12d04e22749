"""Running plugins: a profile calls each extension point in order and merges the answers."""
