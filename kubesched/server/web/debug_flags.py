"""/debug/flags: change the log's verbosity while the process runs.

curl -X PUT --data 4 https://.../debug/flags/v
"""

from __future__ import annotations

import re

from aiohttp import web

from kubesched.server.web.responses import plain
from kubesched.telemetry import logs

log = logs.logger(__name__)

_LARGEST = (1 << 31) - 1


async def list_flags(_: web.Request) -> web.StreamResponse:
    """List what can be changed."""
    page = '<!DOCTYPE html>\n<title>/debug/flags/</title>\n<a href="/debug/flags/v">v</a>\n'
    return web.Response(text=page, content_type="text/html", charset="utf-8")


async def set_verbosity(request: web.Request) -> web.StreamResponse:
    """Set the verbosity to the number in the body."""
    if request.method != "PUT":
        return plain("unsupported http method", 406)
    text = (await request.text()).strip()
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) > _LARGEST:
        problem = "value out of range" if text.isdecimal() else "invalid syntax"
        return plain(f'failed set klog.logging.verbosity {text}: strconv.ParseInt: parsing "{text}": {problem}', 400)
    logs.set_verbosity(int(text))
    log.info("Verbosity changed", v=int(text))
    return plain(f"successfully set klog.logging.verbosity to {text}")
