"""The fields of the served kinds: for strict decoding, merge keys, field ownership, OpenAPI and explain."""

from kubesched.embedded.schema.language import Field, Shape, root_shape, shape_named

__all__ = ["Field", "Shape", "root_shape", "shape_named"]
