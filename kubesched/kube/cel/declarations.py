"""What the CEL library must know of functions that it does not have, or has with other types than Kubernetes.

Each line is `name(arguments) result`, with the type of the target and `|` before it if the function is a member of a value.
A capital letter is a type that may be any, but the same one throughout a line. The first overload that fits decides, so the
order of the lines of one function matters.
"""

from __future__ import annotations

import json
import re
from typing import Any

_SHORT = {
    "Quantity": "kubernetes.Quantity",
    "Semver": "kubernetes.Semver",
    "URL": "kubernetes.URL",
    "Format": "kubernetes.NamedFormat",
    "IP": "net.IP",
    "CIDR": "net.CIDR",
    "optional": "optional_type",
}

_FORMATS = (
    *("dns1123Label", "dns1123Subdomain", "dns1035Label", "dns1123LabelPrefix", "dns1123SubdomainPrefix"),
    *("dns1035LabelPrefix", "qualifiedName", "labelValue", "uri", "uuid", "byte", "date", "datetime"),
)
_SUMMED = ("int", "uint", "double", "duration")
_COMPARED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_NUMBERS = ("int", "uint", "double")
_ORDERS = {"_<_": "less", "_<=_": "less_equals", "_>_": "greater", "_>=_": "greater_equals"}
_REPLACED = ("string", *_ORDERS)
"""Functions of the library that are declared anew, because they have more overloads in Kubernetes."""

_LINES = [
    "quantity(string) Quantity",
    "isQuantity(string) bool",
    "Quantity | isInteger() bool",
    "Quantity | asInteger() int",
    "Quantity | asApproximateFloat() double",
    "Quantity | add(Quantity) Quantity",
    "Quantity | add(int) Quantity",
    "Quantity | sub(Quantity) Quantity",
    "Quantity | sub(int) Quantity",
    "sign(Quantity) int",
    "semver(string) Semver",
    "semver(string, bool) Semver",
    "isSemver(string) bool",
    "isSemver(string, bool) bool",
    *[f"Semver | {name}() int" for name in ("major", "minor", "patch")],
    *[f"{kind} | {name}({kind}) bool" for name in ("isGreaterThan", "isLessThan") for kind in ("Quantity", "Semver")],
    *[f"{kind} | compareTo({kind}) int" for kind in ("Quantity", "Semver")],
    *[f"list({kind}) | {name}() bool" for name in ("isSorted",) for kind in _COMPARED],
    *[f"list({kind}) | sum() {kind}" for kind in _SUMMED],
    *[f"list({kind}) | {name}() {kind}" for name in ("min", "max") for kind in _COMPARED],
    *[
        f"{overload} int"
        for name in ("indexOf", "lastIndexOf")
        for overload in (f"list(T) | {name}(T)", f"string | {name}(string)", f"string | {name}(string, int)")
    ],
    "dyn | includes(dyn) bool",
    "optional.unwrap(list(optional(T))) list(T)",
    "list(optional(T)) | unwrapOpt() list(T)",
    "string | find(string) string",
    "string | findAll(string) list(string)",
    "string | findAll(string, int) list(string)",
    "string | charAt(int) string",
    "string | format(list(dyn)) string",
    "list(string) | join() string",
    "list(string) | join(string) string",
    *[f"string | {name}() string" for name in ("lowerAscii", "upperAscii", "trim")],
    "string | replace(string, string) string",
    "string | replace(string, string, int) string",
    "string | split(string) list(string)",
    "string | split(string, int) list(string)",
    "string | substring(int) string",
    "string | substring(int, int) string",
    "strings.quote(string) string",
    "ip(string) IP",
    "CIDR | ip() IP",
    "isIP(string) bool",
    "ip.isCanonical(string) bool",
    "IP | family() int",
    *[
        f"IP | {name}() bool"
        for name in ("isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast")
    ],
    "cidr(string) CIDR",
    "isCIDR(string) bool",
    "CIDR | containsIP(IP) bool",
    "CIDR | containsIP(string) bool",
    "CIDR | containsCIDR(CIDR) bool",
    "CIDR | containsCIDR(string) bool",
    "CIDR | masked() CIDR",
    "CIDR | prefixLength() int",
    "url(string) URL",
    "isURL(string) bool",
    *[f"URL | {name}() string" for name in ("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath")],
    "URL | getQuery() map(string, list(string))",
    "format.named(string) optional(Format)",
    "Format | validate(string) optional(list(string))",
    *[f"format.{name}() Format" for name in _FORMATS],
    *[f"string({kind}) string" for kind in ("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint")],
    "string(IP) string",
    "string(CIDR) string",
    *[f"{name}({kind}, {kind}) bool" for name in _ORDERS for kind in ("bool", *_NUMBERS)],
    *[f"{name}({kind}, {kind}) bool" for name in _ORDERS for kind in ("string", "bytes", "timestamp", "duration")],
    *[f"{name}({one}, {other}) bool" for name in _ORDERS for one in _NUMBERS for other in _NUMBERS if one != other],
]

_LINE = re.compile(r"(?:(.+) \| )?([^ (]+)\((.*)\) (.+)")
_TOKEN = re.compile(r"[\w.]+|[(),]")


def configuration() -> str:
    """Return the library's configuration: its extensions, and the functions above."""
    functions: dict[str, list[dict[str, Any]]] = {}
    for line in _LINES:
        found = _LINE.fullmatch(line)
        assert found is not None
        target, name, arguments, result = found.groups()
        taken = _types(f"({arguments})")
        known = functions.setdefault(name, [])
        overload: dict[str, Any] = {"id": _id(name, len(known), taken), "args": taken, "return": _types(f"({result})")[0]}
        if target:
            overload["target"] = _types(f"({target})")[0]
        known.append(overload)
    return json.dumps(
        {
            "name": "device",
            "extensions": [{"name": name} for name in ("sets", "lists", "two-var-comprehensions")],
            "stdlib": {"exclude_functions": [{"name": name} for name in _REPLACED]},
            "functions": [{"name": name, "overloads": overloads} for name, overloads in functions.items()],
        }
    )


def _id(name: str, nth: int, taken: list[dict[str, Any]]) -> str:
    """Return a name for an overload; the cost of some functions depends on it (`costs.BY_OVERLOAD`)."""
    kinds = {kind["type_name"] for kind in taken}
    if name in _ORDERS and len(kinds) == 1:
        return f"{_ORDERS[name]}_{kinds.pop()}"
    if name == "string" and kinds == {"bytes"}:
        return "bytes_to_string"
    return f"{name}_{nth}"


def _types(text: str) -> list[dict[str, Any]]:
    """Return the types of a list in brackets, each as the library's configuration has it."""
    open_lists: list[list[dict[str, Any]]] = []
    current: list[dict[str, Any]] = []
    for token in _TOKEN.findall(text):
        if token == "(":
            open_lists.append(current)
            current = []
        elif token == ")":
            inner, current = current, open_lists.pop()
            if not open_lists:
                return inner
            current[-1]["params"] = inner
        elif token != ",":
            is_any = len(token) == 1 and token.isupper()
            current.append({"type_name": token, "is_type_param": True} if is_any else {"type_name": _SHORT.get(token, token)})
    return current
