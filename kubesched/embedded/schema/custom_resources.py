"""Custom resources: a CustomResourceDefinition becomes resources in the catalogue, and its schema becomes rules.

In: definitions as they are created, changed and deleted. Out: resources, the shape and the defaults of their objects, and
causes for values that break the schema. Expressions (x-kubernetes-validations) are not evaluated; a definition that has some
is answered with a warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from kubesched.embedded.clock import timestamp
from kubesched.embedded.schema.language import ANY, Field, Shape, root_shape, shape_named
from kubesched.embedded.schema.resources import Catalogue, Object, Resource
from kubesched.embedded.storage.objects import Storage
from kubesched.embedded.storage.watch import Change
from kubesched.embedded.validation import field
from kubesched.embedded.validation.field import Cause
from kubesched.embedded.verbs.patching import copied
from kubesched.kube.values import RegexError, compile_regex

TABLE = "customresourcedefinitions.apiextensions.k8s.io"
_VALUE_FORMS = {"string": "str", "integer": "int", "number": "num", "boolean": "bool"}  # OpenAPI's types and ours
_MOST_STEPS = 100_000_000  # of a pattern on a value: a sixth of a second, in which the server does nothing else


def follow(storage: Storage, catalogue: Catalogue) -> None:
    """Serve the definitions that there are, and follow their changes. A deleted definition takes its objects along."""
    for entry in storage.table(TABLE).entries.values():
        for resource in resources_of(entry.obj):
            catalogue.add(resource)

    def changed(change: Change) -> None:
        before = resources_of(change.old.obj) if change.old is not None else []
        after = resources_of(change.new.obj) if change.new is not None else []
        for resource in before:
            if all(_place(one) != _place(resource) for one in after):
                catalogue.remove(resource)
        for resource in after:
            catalogue.add(resource)
        if change.new is None and before:
            storage.drop_table(storage.table(before[0].table))

    storage.listen(TABLE, changed)


def _place(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural


def resources_of(definition: Object) -> list[Resource]:
    """Return a resource for each served version of a definition."""
    spec = definition["spec"]
    names = spec["names"]
    found = []
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        subs = tuple(name for name in ("status", "scale") if name in (version.get("subresources") or {}))
        found.append(
            Resource(
                spec["group"],
                version["name"],
                names["plural"],
                names["kind"],
                spec["scope"] == "Namespaced",
                tuple(names.get("shortNames") or ()),
                tuple(names.get("categories") or ()),
                subs,
                table=f"{names['plural']}.{spec['group']}",
                is_storage=bool(version.get("storage")),
                has_generation=True,
                needs_version_on_update=True,
                custom=version,
                singular=names.get("singular") or names["kind"].lower(),
            )
        )
    return found


def established(definition: Object, now: float) -> Object:
    """Return the status of a definition that is served."""
    spec = definition["spec"]

    def condition(kind: str, reason: str, message: str) -> Object:
        moment = timestamp(now)
        return {"type": kind, "status": "True", "lastTransitionTime": moment, "reason": reason, "message": message}

    return {
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "acceptedNames": copied(spec["names"]),
        "storedVersions": [one["name"] for one in spec["versions"] if one.get("storage")],
    }


def definition_problems(definition: Object) -> list[Cause]:
    """Return what is wrong with a definition."""
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    needed = ("plural", "singular", "kind", "listKind")
    causes = [field.required(f"spec.names.{one}") for one in needed if not names.get(one)]
    if not spec.get("group"):
        causes.append(field.required("spec.group"))
    elif "." not in spec["group"]:
        causes.append(field.invalid("spec.group", spec["group"], "should be a domain with at least one dot"))
    if not spec.get("scope"):
        causes.append(field.required("spec.scope"))
    elif spec["scope"] not in ("Namespaced", "Cluster"):
        causes.append(field.not_supported("spec.scope", spec["scope"], ("Cluster", "Namespaced")))
    versions = spec.get("versions") or []
    if sum(bool(one.get("storage")) for one in versions) != 1:
        text = "must have exactly one version marked as storage version"
        causes.append(field.invalid("spec.versions", versions or None, text))
        causes.append(field.invalid("status.storedVersions", None, "must have at least one stored version"))
    seen = set()
    for at, version in enumerate(versions):
        name = version.get("name", "")
        if name in seen:
            causes.append(field.duplicate(f"spec.versions[{at}].name", name))
        seen.add(name)
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            causes.append(field.required(f"spec.versions[{at}].schema.openAPIV3Schema"))
        causes += _pattern_problems(version.get("schema"), f"spec.versions[{at}].schema")
    expected = f"{names.get('plural', '')}.{spec.get('group', '')}"
    if definition["metadata"]["name"] != expected:
        text = 'must be spec.names.plural+"."+spec.group'
        causes.append(field.invalid("metadata.name", definition["metadata"]["name"], text))
    return causes


def _pattern_problems(schema: Any, path: str) -> Iterator[Cause]:
    """Yield the patterns in a schema that are not regular expressions."""
    if isinstance(schema, list):
        for at, one in enumerate(schema):
            yield from _pattern_problems(one, f"{path}[{at}]")
    elif isinstance(schema, dict):
        pattern = schema.get("pattern")
        if isinstance(pattern, str):
            try:
                compile_regex(pattern)
            except RegexError as error:
                text = f"must be a valid regular expression, but isn't: {error}"
                yield field.invalid(f"{path}.pattern", pattern, text)
        for name, one in schema.items():
            if name == "properties" and isinstance(one, dict):
                for one_name, inner in one.items():
                    yield from _pattern_problems(inner, f"{path}.{name}[{one_name}]")
            elif name not in ("default", "enum", "example"):
                yield from _pattern_problems(one, f"{path}.{name}")


def has_expressions(value: Any) -> bool:
    """Return whether a schema contains expressions."""
    if isinstance(value, dict):
        return "x-kubernetes-validations" in value or any(has_expressions(one) for one in value.values())
    return isinstance(value, list) and any(has_expressions(one) for one in value)


def schema_of(resource: Resource) -> Object:
    """Return the OpenAPI schema of a custom resource, empty for a built-in one."""
    return ((resource.custom or {}).get("schema") or {}).get("openAPIV3Schema") or {}


def shape_of(resource: Resource) -> Shape:
    """Return the shape of a resource's objects, built in or custom."""
    if resource.custom is None:
        return root_shape(resource.api_version, resource.kind) or ANY
    return _root_shape(msgspec.json.encode(schema_of(resource)))


@lru_cache(maxsize=256)
def _root_shape(schema: bytes) -> Shape:
    """Return the shape of a schema with the fields that every kind has. Cached by the schema's text."""
    shape = _shape(msgspec.json.decode(schema))
    if shape.form != "object":
        shape = Shape("object", "custom", {}, is_open=True)
    text = Shape("str")
    shape.fields.update(
        apiVersion=Field("apiVersion", text),
        kind=Field("kind", text),
        metadata=Field("metadata", shape_named("ObjectMeta")),
    )
    return shape


def _shape(schema: Any) -> Shape:
    """Return the shape of a schema, as far as decoding and merging need it."""
    if not isinstance(schema, dict):
        return ANY
    is_open = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    if schema.get("x-kubernetes-int-or-string"):
        return Shape("intstr")
    kind = schema.get("type")
    if kind == "object":
        if isinstance(schema.get("additionalProperties"), dict):
            return Shape("map", item=_shape(schema["additionalProperties"]))
        if schema.get("additionalProperties") is True or schema.get("x-kubernetes-embedded-resource"):
            return ANY
        properties = schema.get("properties") or {}
        fields = {name: Field(name, _shape(one)) for name, one in properties.items()}
        return Shape("object", "custom", fields, is_open=is_open)
    if kind == "array":
        style = schema.get("x-kubernetes-list-type")
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if style == "map" else ()
        return Shape("list", item=_shape(schema.get("items")), keys=keys, is_set=style == "set")
    return Shape(_VALUE_FORMS.get(str(kind), "any"))


def fill_defaults(value: Any, schema: Any) -> None:
    """Write the defaults of a schema into an object that lacks them."""
    if not isinstance(schema, dict):
        return
    if isinstance(value, dict):
        for name, inner in (schema.get("properties") or {}).items():
            if name not in value and isinstance(inner, dict) and "default" in inner:
                value[name] = copied(inner["default"])
            if name in value:
                fill_defaults(value[name], inner)
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict):
            for one in value.values():
                fill_defaults(one, extra)
    elif isinstance(value, list):
        for one in value:
            fill_defaults(one, schema.get("items"))


def value_problems(value: Any, schema: Any, path: str = "") -> Iterator[Cause]:
    """Yield a cause for every value that breaks its schema."""
    if not isinstance(schema, dict) or value is None:
        return
    if "enum" in schema and value not in schema["enum"]:
        yield field.not_supported(path, value, [str(one) for one in schema["enum"]])
    if isinstance(value, dict):
        for name in schema.get("required") or ():
            if name not in value:
                yield field.required(f"{path}.{name}" if path else name)
        for name, inner in (schema.get("properties") or {}).items():
            if name in value and not (path == "" and name in ("apiVersion", "kind", "metadata")):
                yield from value_problems(value[name], inner, f"{path}.{name}" if path else name)
        if isinstance(schema.get("additionalProperties"), dict):
            for name, one in value.items():
                yield from value_problems(one, schema["additionalProperties"], f"{path}.{name}")
    elif isinstance(value, list):
        if "minItems" in schema and len(value) < schema["minItems"]:
            yield field.invalid(path, len(value), f"should have at least {schema['minItems']} items")
        if "maxItems" in schema and len(value) > schema["maxItems"]:
            yield field.invalid(path, len(value), f"must have at most {schema['maxItems']} items")
        for at, one in enumerate(value):
            yield from value_problems(one, schema.get("items"), f"{path}[{at}]")
    elif isinstance(value, str):
        yield from _text_problems(value, schema, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if "minimum" in schema and value < schema["minimum"]:
            yield field.invalid(path, value, f"should be greater than or equal to {schema['minimum']}")
        if "maximum" in schema and value > schema["maximum"]:
            yield field.invalid(path, value, f"should be less than or equal to {schema['maximum']}")


def _text_problems(value: str, schema: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with a text: its length, its pattern. A search that would take too long is refused."""
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        yield field.too_long(path, schema["maxLength"])
    if "minLength" in schema and len(value) < schema["minLength"]:
        yield field.invalid(path, value, f"should be at least {schema['minLength']} chars long")
    pattern = schema.get("pattern")
    if pattern:
        try:
            regex = compile_regex(pattern)
            if regex.steps(value) > _MOST_STEPS:
                yield field.invalid(path, value[:64], f"too long to be matched with '{pattern}'")
            elif not regex.matches(value):
                yield field.invalid(path, value, f"should match '{pattern}'")
        except RegexError as error:
            yield field.invalid(path, value, f"should match '{pattern}, but pattern is invalid: {error}'")
