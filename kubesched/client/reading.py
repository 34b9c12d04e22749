"""Reading without following: one object by name, or all of a kind once. For commands that look and leave."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import quote

from kubesched.api import codec
from kubesched.api.kinds import INFO
from kubesched.api.meta import TopLevel
from kubesched.client.connection import Connection
from kubesched.client.decoding import Decoder, garbage_kept
from kubesched.client.reflector import PAGE_SIZE
from kubesched.client.resources import Watched, collection_path

T = TypeVar("T", bound=TopLevel)


async def get_object(connection: Connection, type_: type[T], name: str, namespace: str = "") -> T:
    """Return one object; raise `NotFound` if there is none."""
    info = INFO[type_]
    path = collection_path(info.api_version, info.plural, namespace if info.namespaced else "")
    return codec.decode_as(type_, await connection.request("GET", f"{path}/{quote(name, safe='')}"))


async def list_objects(
    connection: Connection, type_: type[T], namespace: str = "", *, field_selector: str = "", label_selector: str = ""
) -> list[T]:
    """Return all objects of a kind, in one namespace or over all."""
    info = INFO[type_]
    decoder = Decoder(Watched(info.kind, type_, info.plural, (info.api_version,)))
    query = f"?limit={PAGE_SIZE}"
    for name, text in (("fieldSelector", field_selector), ("labelSelector", label_selector)):
        query += f"&{name}={quote(text, safe='')}" if text else ""
    path = collection_path(info.api_version, info.plural, namespace) + query
    found: list[T] = []
    token = ""
    while True:
        body = await connection.request("GET", f"{path}&continue={quote(token, safe='')}" if token else path)
        with garbage_kept():
            page = decoder.page(body)
        found += page.items
        token = page.metadata.continue_
        if not token:
            return found
