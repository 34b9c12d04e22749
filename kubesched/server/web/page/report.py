"""A report: one HTML file that needs nothing else, drawn by the modules of the page.

In: a document. Out: the text of the file, with style, scripts and document inside. Each module becomes a function that returns
what the module exports, so page and report share them. The content security policy allows only these scripts, by their hashes,
and no connection at all.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

import msgspec

MODULES = ("dom.js", "model.js", "node-map.js", "plot.js", "report.js")
"""What a report needs, each after those that it imports."""
_IMPORT = re.compile(r'^import (\{[^}]*\} from )?"\./([\w-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def report_page(title: str, document: Mapping[str, Any]) -> str:
    """Return the text of the file."""
    style, script = _file("page.css"), _bundle()
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; base-uri 'none'"
    # What a name in the document contains must not end the script element: JSON may write < as an escape.
    data = msgspec.json.encode(document).decode().replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html.escape(title)} · kubesched</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body class="report">
<main id="view"></main>
<script type="application/json" id="document">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def _bundle() -> str:
    return "const modules = {};\n" + "".join(_wrapped(name, _file(name)) for name in MODULES)


def _wrapped(name: str, source: str) -> str:
    exported = ", ".join(_EXPORT.findall(source))
    body = _EXPORT.sub("", _IMPORT.sub(_imported, source))
    return f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n'


def _imported(found: re.Match[str]) -> str:
    names = (found[1] or "").removesuffix(" from ").replace(" as ", ": ")
    return f'const {names} = modules["{found[2]}"];' if found[1] else ""


def _file(name: str) -> str:
    return (resources.files("kubesched.server.web") / "ui" / name).read_text("utf-8")


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
