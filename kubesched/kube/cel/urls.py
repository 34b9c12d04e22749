"""URLs in CEL: Kubernetes' `url` functions, which read and write as Go's net/url does.

`url(text)` reads the text twice, as the reference does: as the target of an HTTP request, which must be an absolute URL or an
absolute path, and once more without the fragment.
"""

from __future__ import annotations

import ipaddress
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote, unquote_to_bytes

from kubesched.kube.cel.values import EvaluationError, no_overload
from kubesched.kube.values import go_quote

_PLAIN = string.ascii_letters + string.digits + "-._~"
_IN_USER = "$&+,;="
_IN_PATH = "$&+,/:;=@"
_IN_FRAGMENT = "!$&()*+,/:;=?@"
_IN_HOST = "!\"$&'()*+,:;<=>[]"
"""What needs no escape besides letters, digits and "-._~"."""

_KEPT = "!$&'()*+,;=:@[]%"
"""What an escaped path or fragment may hold besides."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.DOTALL)
_USER = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_PORT = re.compile(r"(?::[0-9]*)?")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_MOST_PARAMETERS = 10_000


@dataclass(frozen=True, slots=True)
class URL:
    """An absolute URL, or an absolute path."""

    cel_name: ClassVar[str] = "kubernetes.URL"
    text: str
    """How Go would write it: two URLs are equal if these are."""
    scheme: str
    host: str
    escaped_path: str
    query: str

    @staticmethod
    def parse(text: str) -> URL:
        """Read a URL; a text that is none, or is a relative one, raises."""
        try:
            _read(text, of_request=True)
            before, _, fragment = text.partition("#")
            url = _read(before, of_request=False)
            if fragment:
                _, escaped = _unescaped(fragment, _IN_FRAGMENT)
                url = URL(f"{url.text}#{escaped}", url.scheme, url.host, url.escaped_path, url.query)
        except _Refused as error:
            raise EvaluationError(f"URL parse error during conversion from string: parse {go_quote(text)}: {error}") from None
        return url

    @property
    def host_and_port(self) -> tuple[str, str]:
        """Return the host without brackets, and the port."""
        name, colon, port = self.host.rpartition(":")
        if not colon or not re.fullmatch("[0-9]*", port):
            name, port = self.host, ""
        return (name[1:-1] if name.startswith("[") and name.endswith("]") else name), port

    def parameters(self) -> dict[str, list[str]]:
        """Return the query's parameters; those that are wrong are left out."""
        found: dict[str, list[str]] = {}
        pairs = self.query.split("&")
        for pair in pairs if len(pairs) <= _MOST_PARAMETERS else ():
            if pair and ";" not in pair and not _BROKEN_ESCAPE.search(pair):
                key, _, value = pair.replace("+", " ").partition("=")
                found.setdefault(_decoded(key), []).append(_decoded(value))
        return found

    def __str__(self) -> str:
        return self.text


class _Refused(Exception):
    """A text that is no URL."""


def _read(text: str, of_request: bool) -> URL:
    if any(letter < " " or letter == "\x7f" for letter in text):
        raise _Refused("net/url: invalid control character in URL")
    if not text and of_request:
        raise _Refused("empty url")
    if text == "*":
        return URL("*", "", "", "*", "")
    if text.startswith(":"):
        raise _Refused("missing protocol scheme")
    found = _SCHEME.match(text)
    scheme, rest = (found[1].lower(), text[found.end() :]) if found else ("", text)
    rest, mark, query = rest.partition("?")
    start = f"{scheme}:" if scheme else ""
    if not rest.startswith("/"):
        if scheme:
            return URL(f"{start}{rest}{mark}{query}", scheme, "", "", query)
        if of_request:
            raise _Refused("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise _Refused("first path segment in URL cannot contain colon")
    user = host = ""
    has_user = omits_host = False
    if rest.startswith("//") and (scheme or (not of_request and not rest.startswith("///"))):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        user, at, host = authority.rpartition("@")
        has_user, host = bool(at), _host(host, scheme)
    else:
        omits_host = bool(scheme) and rest.startswith("/")
    if has_user:
        if not _USER.fullmatch(user):
            raise _Refused("net/url: invalid userinfo")
        name, colon, password = user.partition(":")
        user = _escaped(_unescaped(name, "")[0], _IN_USER) + colon + _escaped(_unescaped(password, "")[0], _IN_USER)
    path, escaped_path = _unescaped(rest, _IN_PATH)
    if (scheme or host or has_user) and not (omits_host and not host and not has_user):
        if host or path or has_user:
            start += "//"
        start += (f"{user}@" if has_user else "") + _escaped(host.encode(), _IN_HOST)
    if not start and ":" in escaped_path.partition("/")[0]:
        start = "./"
    return URL(f"{start}{escaped_path}{mark}{query}", scheme, host, escaped_path, query)


def _host(host: str, scheme: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise _Refused("invalid IP-literal")
    if bracket == 0:
        name, closing, port = host[1:].rpartition("]")
        if not closing:
            raise _Refused("missing ']' in host")
        if not _PORT.fullmatch(port):
            raise _Refused(f'invalid port "{port}" after host')
        address, percent, zone = name.partition("%25")
        name = _unescaped_host(address) + (_unescaped_host(percent + zone, in_zone=True) if percent else "")
        try:
            ipaddress.IPv6Address(name)
        except ValueError:
            raise _Refused("invalid host") from None
        return f"[{name}]{port}"
    # A second colon is refused for HTTP alone; elsewhere what follows the last one is the port.
    first, last = host.find(":"), host.rfind(":")
    colon = first if scheme in ("http", "https") else last
    if colon >= 0 and not _PORT.fullmatch(host[colon:]):
        raise _Refused(f'invalid port "{host[colon:]}" after host')
    return _unescaped_host(host)


def _unescaped_host(text: str, in_zone: bool = False) -> str:
    _check_escapes(text)
    for escape in re.findall("%..", text):
        code = int(escape[1:], 16)
        fine = in_zone and (chr(code) in _PLAIN + _IN_HOST + " ")
        if escape != "%25" and not fine and (in_zone or code < 128):
            raise _Refused(f'invalid URL escape "{escape}"')
    for letter in re.sub("%..", "", text):
        if letter < "\x80" and letter not in _PLAIN + _IN_HOST:
            raise _Refused(f'invalid character "{letter}" in host name')
    return _decoded(text)


def _check_escapes(text: str) -> None:
    broken = _BROKEN_ESCAPE.search(text)
    if broken:
        raise _Refused(f'invalid URL escape "{text[broken.start() : broken.start() + 3]}"')


def _unescaped(text: str, unreserved: str) -> tuple[bytes, str]:
    """Return a path, a fragment or a part of the user, and how it is written: as it was, if nothing needs an escape."""
    _check_escapes(text)
    plain = unquote_to_bytes(text)
    is_fine = all(letter in _PLAIN + unreserved + _KEPT for letter in text)
    return plain, text if is_fine else _escaped(plain, unreserved)


def _escaped(text: bytes, unreserved: str) -> str:
    return "*" if text == b"*" and unreserved == _IN_PATH else quote(text, safe=unreserved)


def _decoded(text: str) -> str:
    return unquote_to_bytes(text).decode(errors="replace")


def _make(text: Any) -> URL:
    if not isinstance(text, str):
        raise no_overload("url", text)
    return URL.parse(text)


def request_complaint(text: str) -> str | None:
    """Return why a text cannot be the target of an HTTP request; None if it can."""
    try:
        _read(text, of_request=True)
    except _Refused as error:
        return f"parse {go_quote(text)}: {error}"
    return None


def _is_url(text: Any) -> bool:
    if not isinstance(text, str):
        raise no_overload("isURL", text)
    return request_complaint(text) is None


GLOBALS: dict[str, Callable[..., Any]] = {"url": _make, "isURL": _is_url}

MEMBERS: dict[str, Callable[..., Any]] = {
    "getScheme": lambda url: url.scheme,
    "getHost": lambda url: url.host,
    "getHostname": lambda url: url.host_and_port[0],
    "getPort": lambda url: url.host_and_port[1],
    "getEscapedPath": lambda url: url.escaped_path,
    "getQuery": lambda url: url.parameters(),
}
"""What can be asked of a URL."""
