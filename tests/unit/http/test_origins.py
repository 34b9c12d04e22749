"""Whose pages may ask a server without credentials."""

from __future__ import annotations

import pytest

from kubesched.http import Origins

LOCAL, OPEN = "127.0.0.1", "0.0.0.0"
CASES = [
    ("no browser", LOCAL, None, None, True),
    ("localhost", LOCAL, "localhost:8080", None, True),
    ("a name below localhost", LOCAL, "demo.localhost", None, True),
    ("another loopback address", LOCAL, "127.0.0.2:1", None, True),
    ("loopback of the other family", LOCAL, "[::1]:8080", None, True),
    ("a name that points here", LOCAL, "evil.example:8080", None, False),
    ("a name that looks like loopback", LOCAL, "127.0.0.1.evil.example", None, False),
    ("a name that ends like loopback", LOCAL, "notlocalhost", None, False),
    ("a user in front of the name", LOCAL, "localhost@evil.example", None, False),
    ("another machine's address", LOCAL, "192.0.2.7:8080", None, False),
    ("no address", LOCAL, "[::1", None, False),
    ("an address of a server for all", OPEN, "192.0.2.7:8080", None, True),
    ("a foreign name of a server for all", OPEN, "evil.example", None, False),
    ("the address that is served", "192.0.2.7", "192.0.2.7:8080", None, True),
    ("the name that is served", "api.test", "api.test:8080", None, True),
    ("the page itself", LOCAL, "localhost:8080", "http://localhost:8080", True),
    ("another site", LOCAL, "localhost:8080", "https://evil.example", False),
    ("another port of this machine", LOCAL, "localhost:8080", "http://localhost:3000", False),
    ("a file, or a sandbox", LOCAL, "localhost:8080", "null", False),
    ("an origin that is none", LOCAL, "localhost:8080", "http://[", False),
    ("a rebound site's own origin", LOCAL, "evil.example:8080", "http://evil.example:8080", False),
]


@pytest.mark.parametrize(("case", "served", "host", "origin", "passes"), CASES, ids=[case[0] for case in CASES])
def test_who_may_ask(case: str, served: str, host: str | None, origin: str | None, passes: bool) -> None:
    headers = {name: value for name, value in (("Host", host), ("Origin", origin)) if value is not None}
    assert (Origins(served).refusal(headers) == "") is passes
