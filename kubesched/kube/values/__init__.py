"""Values inside API objects: quantities, label names, regular expressions, and bounds on text from outside."""
