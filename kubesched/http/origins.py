"""Checks that a request comes from the server's own pages, for servers without authentication.

In: the address that is served, and the headers of a request. Out: why the request is refused, or an empty text. A web site can
make a browser on this machine send requests here. The browser says in `Origin` which site that is, and in `Host` which name it
connected to: a site whose name was made to point here (DNS rebinding) is recognised by that.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit


class Origins:
    """The names under which one server may be used."""

    def __init__(self, served: str) -> None:
        self._served = served.strip("[]").lower()
        self._is_open = not _is_loopback(self._served)
        # Whoever serves to other machines is reached through forwarded ports too. No site can have an address, or this
        # machine's name, as its own name.
        self._names = {self._served} | ({socket.gethostname().lower()} if self._is_open else set())
        self._accepted = ""  # the last, which mostly is the next too

    def refusal(self, headers: Mapping[str, str]) -> str:
        """Return why a request is refused; empty if it is not."""
        host = headers.get("Host", "")
        if host != self._accepted:  # a browser always names one
            if not self._is_ours(host):
                return f"this server is not {host!r}: use its address, or localhost"
            self._accepted = host
        origin = headers.get("Origin")
        if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
            return f"a page of {origin!r} may not use this server"
        return ""

    def _is_ours(self, host: str) -> bool:
        """Return whether a Host header names this server."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:
            return False
        return _is_loopback(name) or (name != "" and name in self._names) or (self._is_open and _is_address(name))


def _is_loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
