"""Read one object by name, or list all objects of a kind once. Commands use this; the scheduler uses reflectors."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import quote

from kubesched.errors import NotFound
from kubesched.kube.api import INFO, TopLevel, codec
from kubesched.kube.client.connection import Connection
from kubesched.kube.client.informers.decoding import Decoder, garbage_kept
from kubesched.kube.client.informers.discovery import discover
from kubesched.kube.client.informers.reflector import PAGE_SIZE
from kubesched.kube.client.informers.resources import Watched, collection_path, row_of

T = TypeVar("T", bound=TopLevel)


async def get_object(connection: Connection, type_: type[T], name: str, namespace: str = "") -> T:
    """Return one object; raise `NotFound` if there is none."""
    row = row_of(type_)
    path = collection_path(await _version(connection, row), row.plural, namespace if INFO[type_].namespaced else "")
    return codec.decode_as(type_, await connection.request("GET", f"{path}/{quote(name, safe='')}"))


async def list_objects(
    connection: Connection,
    type_: type[T],
    namespace: str = "",
    *,
    api_version: str = "",
    field_selector: str = "",
    label_selector: str = "",
) -> list[T]:
    """Return all objects of a kind, in one namespace or over all. `api_version` saves a request if it is known."""
    row = row_of(type_)
    api_version = api_version or await _version(connection, row)
    decoder = Decoder(row, api_version)
    query = f"?limit={PAGE_SIZE}"
    for name, text in (("fieldSelector", field_selector), ("labelSelector", label_selector)):
        query += f"&{name}={quote(text, safe='')}" if text else ""
    path = collection_path(api_version, row.plural, namespace) + query
    found: list[T] = []
    # Pages, as the reflector reads them: one list of 100,000 pods would be hundreds of megabytes at once, here and in the API
    # server.
    token = ""
    while True:
        body = await connection.request("GET", f"{path}&continue={quote(token, safe='')}" if token else path)
        with garbage_kept():
            page = decoder.page(body)
        found += page.items
        token = page.metadata.continue_
        if not token:
            return found


async def _version(connection: Connection, row: Watched) -> str:
    """Return the version in which the server serves a kind. If we know only one it is not asked."""
    if len(row.api_versions) == 1:
        return row.api_versions[0]
    found = (await discover(connection, row.api_versions)).version_of(row)
    if found is None:
        raise NotFound(404, "NotFound", f"the server serves {row.plural} in none of {', '.join(row.api_versions)}")
    return found
