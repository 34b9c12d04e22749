"""What may change in a .proto file: the rules that buf calls WIRE_JSON, as far as our files need them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def breaking_changes(old: Any, new: Any) -> list[str]:
    """Return what of a new version of a file breaks callers of the old one; both are descriptors."""
    found = [] if old.package == new.package else [f"package: was {old.package}"]
    return [*found, *_messages(old, new), *_services(old, new)]


def _messages(old: Any, new: Any) -> Iterator[str]:
    messages = {each.name: each for each in new.message_type}
    for message in old.message_type:
        if message.name not in messages:
            yield f"{message.name}: was removed"
            continue
        now = messages[message.name]
        numbers, names = {each.number: each for each in now.field}, {each.name: each for each in now.field}
        reserved = {n for part in now.reserved_range for n in range(part.start, part.end)}
        for part in message.reserved_range:
            yield from (f"{message.name}: number {n} was reserved" for n in range(part.start, part.end) if n in numbers)
        for name in message.reserved_name:
            if name in names:
                yield f"{message.name}: name {name} was reserved"
        for field in message.field:
            where, kept = f"{message.name}.{field.name}", numbers.get(field.number)
            if kept is None:
                if field.number not in reserved or field.name not in now.reserved_name:
                    yield f"{where}: was removed without reserving its number and its name"
            elif kept.name != field.name:
                yield f"{where}: number {field.number} is {kept.name} now"
            elif (kept.type, kept.type_name, kept.label) != (field.type, field.type_name, field.label):
                yield f"{where}: its type has changed"


def _services(old: Any, new: Any) -> Iterator[str]:
    services = {each.name: {method.name: method for method in each.method} for each in new.service}
    for service in old.service:
        for method in service.method:
            now = services.get(service.name, {}).get(method.name)
            if now is None:
                yield f"{service.name}.{method.name}: was removed"
            elif now != method:
                yield f"{service.name}.{method.name}: takes or gives something else"
