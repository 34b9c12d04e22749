"""Values from the wire: the objects that the scheduler reads and writes, and what can be said of them alone.

The structs live in one module an API group; `kinds` has a row for each of them. `codec` turns bytes into objects and back,
`selectors` and `matching` ask who is selected, `requests` what a pod asks for.
"""
