"""OpenAPI: the fields of every served kind as documents, for `kubectl explain` and for kubectl's validation.

In: the catalogue and the shapes. Out: the index at /openapi/v3 with a document per group and version, and the single
document at /openapi/v2. Made once per state of the catalogue. Operations are listed as far as kubectl looks at them.
"""

from __future__ import annotations

import hashlib

from kubesched.embedded.http.encoding import encode
from kubesched.embedded.schema.custom_resources import schema_of, shape_of
from kubesched.embedded.schema.language import Shape
from kubesched.embedded.schema.resources import RELEASES, Catalogue, Object, Resource
from kubesched.embedded.schema.words import words_for

_VALUES: dict[str, Object] = {
    "str": {"type": "string"},
    "int": {"type": "integer", "format": "int64"},
    "num": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "quantity": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
}
# kubectl asks for the v2 document in protobuf, and only to learn that it has nothing to say about a kind that the v3
# documents do not know either. This is the smallest Document: swagger "2.0", a title, a version, no paths, no models.
V2_PROTOBUF_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
V2_PROTOBUF = b"\x0a\x032.0\x12\x0f\x0a\x09kubesched\x12\x02v1\x42\x00"
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")


class OpenApi:
    """The documents of one catalogue, made when they are first asked for and again when a custom resource comes or goes."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._revision = -1
        self._documents: dict[str, bytes] = {}
        self._index = b""
        self._v2 = b""

    def index(self) -> bytes:
        """Return the document at /openapi/v3."""
        self._refresh()
        return self._index

    def document(self, path: str) -> bytes | None:
        """Return the document at /openapi/v3/PATH, such as `apis/apps/v1`."""
        self._refresh()
        return self._documents.get(path)

    def v2(self) -> bytes:
        """Return the document at /openapi/v2."""
        self._refresh()
        if not self._v2:
            paths: Object = {}
            schemas: dict[str, Object] = {}
            for resource in self._catalogue:
                paths |= _paths(resource, is_v3=False)
                _add_schemas(resource, schemas, "#/definitions/")
            info = _info(self._catalogue.release)
            self._v2 = encode({"swagger": "2.0", "info": info, "paths": paths, "definitions": schemas})
        return self._v2

    def _refresh(self) -> None:
        """Make the documents anew if the catalogue has changed. Each link has a hash, by which kubectl caches the document."""
        if self._revision == self._catalogue.revision:
            return
        self._revision, self._v2, self._documents = self._catalogue.revision, b"", {}
        grouped: dict[str, list[Resource]] = {}
        for resource in self._catalogue:
            grouped.setdefault(_document_path(resource), []).append(resource)
        links = {}
        for path, resources in grouped.items():
            body = encode(_document(resources, self._catalogue.release))
            self._documents[path] = body
            digest = hashlib.sha256(body).hexdigest().upper()
            links[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
        self._index = encode({"paths": links})


def _document_path(resource: Resource) -> str:
    """Return where the document of a resource's version stands below /openapi/v3."""
    return f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"


def _info(release: int) -> Object:
    return {"title": "kubesched", "version": RELEASES[release]}


def _document(resources: list[Resource], release: int) -> Object:
    """Return the v3 document of a group and version."""
    paths: Object = {}
    schemas: dict[str, Object] = {}
    for resource in resources:
        paths |= _paths(resource, is_v3=True)
        _add_schemas(resource, schemas, "#/components/schemas/")
    return {"openapi": "3.0.0", "info": _info(release), "paths": paths, "components": {"schemas": schemas}}


def _paths(resource: Resource, is_v3: bool) -> Object:
    """Return the paths of a resource with their write operations; kubectl reads from them which parameters are understood."""
    prefix = f"/{_document_path(resource)}/" + ("namespaces/{namespace}/" if resource.namespaced else "")
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    text: Object = {"schema": {"type": "string"}} if is_v3 else {"type": "string"}
    parameters = [{"name": name, "in": "query", **text} for name in _WRITE_PARAMETERS]

    def operation(action: str) -> Object:
        return {
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": kind,
            "parameters": parameters,
            "responses": {"200": {"description": "OK"}},
        }

    collection = {"post": operation("post")} if "create" in resource.verbs else {}
    found: Object = {f"{prefix}{resource.plural}": collection}
    if "patch" in resource.verbs:
        one = {"put": operation("put"), "patch": operation("patch"), "delete": operation("delete")}
        found[f"{prefix}{resource.plural}/{{name}}"] = one
    return found


def _add_schemas(resource: Resource, schemas: dict[str, Object], prefix: str) -> None:
    """Add the schema of a resource, and all that it refers to."""
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    shape = shape_of(resource)
    if resource.custom is not None:
        metadata = shape.fields["metadata"].shape
        _schema_of(metadata, schemas, prefix)
        schema = dict(schema_of(resource))
        schema["properties"] = {
            **(schema.get("properties") or {}),
            "apiVersion": {"type": "string", "description": words_for("", "apiVersion")},
            "kind": {"type": "string", "description": words_for("", "kind")},
            "metadata": {"allOf": [{"$ref": prefix + metadata.name}], "description": words_for("", "metadata")},
        }
        name = f"{resource.group}.{resource.version}.{resource.kind}"
    else:
        _schema_of(shape, schemas, prefix)
        name = shape.name
        schema = schemas[name]
    schema["x-kubernetes-group-version-kind"] = [kind]
    schemas[name] = schema


def _schema_of(shape: Shape, schemas: dict[str, Object], prefix: str) -> Object:
    """Return the schema of a shape, adding the objects it is made of."""
    if shape.form == "object":
        if shape.name not in schemas:
            schema: Object = {"type": "object", "description": words_for(shape.name)}
            schemas[shape.name] = schema
            schema["properties"] = {
                name: _described(_schema_of(one.shape, schemas, prefix), shape.name, name) for name, one in shape.fields.items()
            }
            needed = [name for name, one in shape.fields.items() if one.required]
            if needed:
                schema["required"] = needed
        return {"$ref": prefix + shape.name}
    if shape.form == "map" and shape.item is not None:
        return {"type": "object", "additionalProperties": _schema_of(shape.item, schemas, prefix)}
    if shape.form == "list" and shape.item is not None:
        found: Object = {"type": "array", "items": _schema_of(shape.item, schemas, prefix)}
        if shape.keys:
            found["x-kubernetes-list-type"] = "map"
            found["x-kubernetes-list-map-keys"] = list(shape.keys)
            found["x-kubernetes-patch-strategy"] = "merge"
            found["x-kubernetes-patch-merge-key"] = shape.merge_key
        elif shape.is_set:
            found["x-kubernetes-list-type"] = "set"
            found["x-kubernetes-patch-strategy"] = "merge"
        else:
            found["x-kubernetes-list-type"] = "atomic"
        return found
    if shape.form == "intstr":
        return {"type": "string", "format": "int-or-string"}
    if shape.form == "any":
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return dict(_VALUES[shape.form])


def _described(schema: Object, type_name: str, field_name: str) -> Object:
    """Return a schema with the sentence of its field. A reference cannot have one beside it, so it is wrapped."""
    text = words_for(type_name, field_name)
    if "$ref" in schema:
        return {"allOf": [schema], "description": text} if text else schema
    return {**schema, "description": text} if text else schema
