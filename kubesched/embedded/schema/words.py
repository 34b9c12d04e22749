"""What the fields mean, for `kubectl explain`; the sentences stand in tables/words.txt."""

from __future__ import annotations

from kubesched.embedded.schema.tables import table

_SENTENCES = table("words")


def words_for(type_name: str, field_name: str = "") -> str:
    """Return the sentence for a type or one of its fields, or ""."""
    if not field_name:
        return _SENTENCES.get(type_name, "")
    return _SENTENCES.get(f"{type_name}.{field_name}") or _SENTENCES.get(f".{field_name}", "")
