"""Pseudonyms: the same word becomes the same pseudonym wherever it stands, so that whatever refers to it still does.

In: words with what they are the name of. Out: `node-07`, `ns-2`. It takes two rounds: in the first, words are collected; then
they are numbered in their order, so that things which are sorted by name stay sorted; in the second they are replaced. Words
that are put together from others (images and their tags, zones of a region, paths of disks) are replaced part by part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kubesched.kube.api import DEVICE_CLASS_RESOURCE_PREFIX, parse_int64
from kubesched.kube.values import HOSTNAME, label_value_complaints, qualified_name_complaints
from kubesched.tools.snapshots.checksums import with_same_checksum

KEPT_WORDS = frozenset(("", "default", "kube-system", "kube-public", "kube-node-lease", "latest", "true", "false"))
_KEPT_VALUES = re.compile(r"(beta\.)?kubernetes\.io/(os|arch)|(beta|node)\.kubernetes\.io/instance-type")
"""Keys whose values mean something to everybody; the instance type says how many volumes a node takes."""
_KEPT_KEYS = re.compile(r"metadata\.name|([a-z0-9.-]*\.)?(kubernetes|k8s)\.io(/.*)?|topology\.[a-z0-9.-]+/.*")
_ROLE = "node-role.kubernetes.io/"
_KNOWN_ROLES = ("control-plane", "master", "worker", "etcd")
_UID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32}")
_PART_OF_PATH = re.compile(r"[^/:@?&=,\[\]\s]+")
_KEPT_PARTS = frozenset(
    (
        "aws",
        "projects",
        "zones",
        "regions",
        "disks",
        "UNSPECIFIED",
        "subscriptions",
        "resourceGroups",
        "providers",
        "Microsoft.Compute",
    )
)
_LITERAL = re.compile(
    r"(?P<before>[\w.]*\s*[(\[]\s*)?[bBrR]{0,2}"
    r"(?:'{3}(?P<a>.*?)'{3}|\"{3}(?P<b>.*?)\"{3}|'(?P<c>(?:[^'\\]|\\.)*)'|\"(?P<d>(?:[^\"\\]|\\.)*)\")",
    re.DOTALL,
)
"""A text in a CEL expression, however it is quoted, and what it is handed to or looked up in."""
_LOOKED_UP = re.compile(r"(attributes|capacity)\s*\[")
_READ_AS_NUMBER = re.compile(r"\b(semver|isSemver|quantity|isQuantity|duration|timestamp)\s*\(")
_READ_AS_TEXT = re.compile(
    r"\.(startsWith|endsWith|contains|matches|find|findAll|indexOf|lastIndexOf|replace|split|substring|charAt|size|format|"
    r"lowerAscii|upperAscii|trim|reverse)\s*\("
)
_MADE_REQUEST = re.compile(r"container-\d+-request-\d+")
_UNREADABLE = " ?"
"""Makes a pseudonym as little of a label as what it stands for: a selector that breaks an attempt still does."""
_PLAIN = re.compile(r"[A-Za-z]*")


class Pseudonyms:
    """Words and what they are replaced by."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._uids: dict[str, str] = {}
        self._kept: set[str] = set()
        self._is_settled = False
        self._attributes: set[str] = set()
        self.read_as_text: set[str] = set()
        """Expressions that may decide otherwise under pseudonyms."""

    def settle(self, composites: Mapping[str, tuple[str, str]]) -> None:
        """Give every collected word its pseudonym; `composites` are words that must be two others joined by a dash."""
        by_kind: dict[str, list[str]] = {}
        for word, kind in self._kinds.items():
            if word not in self._kept:
                by_kind.setdefault(kind, []).append(word)
        for kind, words in by_kind.items():
            width = len(str(len(words)))
            for number, word in enumerate(sorted(words), 1):
                self.words[word] = f"{kind}-{number:0{width}}"
        for word, (one, other) in composites.items():
            if word in self.words:
                self.words[word] = f"{self.words.get(one, one)}-{self.words.get(other, other)}"
        self._is_settled = True

    def name(self, kind: str, word: str) -> str:
        """Return the pseudonym of a name; what it is first seen as says what it is called. Numbers stay: they say nothing, and
        where they are label values they may be compared."""
        if word in KEPT_WORDS or parse_int64(word) is not None:
            return word
        if not self._is_settled:
            self._kinds.setdefault(word, kind)
            return word
        return self.words[word] if word not in self._kept else word

    def keep(self, word: str) -> str:
        """Return a word as it is, and let it stay wherever else it stands: a driver is also named in expressions."""
        self._kept.add(word)
        return word

    def attribute(self, name: str) -> str:
        """Return the name of a device attribute, which stays, also where an expression asks for it by its name."""
        self._attributes.add(name.rpartition("/")[2])
        return name

    def uid(self, uid: str) -> str:
        """Return a uid as it is, unless it could hold a name: then another one by which ties fall the same way."""
        if not uid or _UID.fullmatch(uid):
            return uid
        if uid not in self._uids:
            self._uids[uid] = with_same_checksum(f"uid-{len(self._uids) + 1}-", uid)
        return self._uids[uid]

    # Labels

    def key(self, key: str) -> str:
        """Return a label's key; those of Kubernetes and of topologies stay."""
        if key.startswith(_ROLE) and key.removeprefix(_ROLE) not in _KNOWN_ROLES:
            return _ROLE + self.name("role", key.removeprefix(_ROLE))
        if not key or _KEPT_KEYS.fullmatch(key):
            return key
        return self._as_readable(key, self.name("label", key), bool(qualified_name_complaints(key)))

    def value(self, key: str, value: str) -> str:
        """Return a label's value; what everybody knows stays."""
        if _KEPT_VALUES.fullmatch(key):
            return value
        if key.endswith(("/zone", "/region")):  # of a volume, several in one value
            return "__".join(
                self.zone(part) if key.endswith("/zone") else self.name("region", part) for part in value.split("__")
            )
        hidden = self.name("node" if key in (HOSTNAME, "metadata.name") else "value", value)
        return self._as_readable(value, hidden, bool(label_value_complaints(value)))

    @staticmethod
    def _as_readable(word: str, hidden: str, is_broken: bool) -> str:
        return hidden + _UNREADABLE if is_broken and hidden != word else hidden

    def zone(self, zone: str) -> str:
        """Return a zone; where its name begins with that of its region, the pseudonym does too."""
        region, dash, last = zone.rpartition("-")
        if not dash or region.count("-") != 1 or len(last) > 3:
            return self.name("zone", zone)
        return f"{self.name('region', region)}-{last}"

    def labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return a map of labels."""
        return {self.key(key): self.value(key, value) for key, value in labels.items()}

    # Words with parts

    def image(self, image: str) -> str:
        """Return an image; a tag stays a tag, because one without is taken for the latest."""
        at = image.rfind(":")
        if at <= image.rfind("/"):
            return self.name("image", image)
        return f"{self.name('image', image[:at])}:{self.name('tag', image[at + 1 :])}"

    def path(self, path: str) -> str:
        """Return a disk's address, part by part: a volume and its CSI handle must still be the same."""
        return _PART_OF_PATH.sub(lambda found: self._part(found.group()), path)

    def _part(self, part: str) -> str:
        if part in _KEPT_PARTS:
            return part
        return self.name("vol" if part.startswith("vol-") else "disk", part)

    def request(self, request: str) -> str:
        """Return the name of a request for devices, or of one of its alternatives (main/sub)."""
        if _MADE_REQUEST.fullmatch(request):
            return request
        return "/".join(self.name("request", part) for part in request.split("/"))

    def resource(self, resource: str) -> str:
        """Return a resource's name, which stays, unless it is made from a device class."""
        if not resource.startswith(DEVICE_CLASS_RESOURCE_PREFIX):
            return resource
        return DEVICE_CLASS_RESOURCE_PREFIX + self.name("deviceclass", resource.removeprefix(DEVICE_CLASS_RESOURCE_PREFIX))

    def expression(self, expression: str) -> str:
        """Return a CEL expression with its texts replaced: names and values of attributes.

        Drivers stay, and so does what is read as a version or an amount. Pseudonyms are sorted as what they stand for, but
        nothing else of their letters is the same: an expression that looks into texts is noted.
        """
        if _READ_AS_TEXT.search(expression):
            self.read_as_text.add(expression)

        def replaced(found: re.Match[str]) -> str:
            before = found["before"] or ""
            text = next(part for part in (found["a"], found["b"], found["c"], found["d"]) if part is not None)
            if _LOOKED_UP.search(before) or _READ_AS_NUMBER.search(before) or text in self._kept | self._attributes:
                return found.group()
            return f"{before}'{self.name('value', text)}'"

        return _LITERAL.sub(replaced, expression)

    def word(self, word: str) -> str:
        """Return one of the API's words (a reason, a condition's type); what is not of its shape is a name."""
        return word if _PLAIN.fullmatch(word) else self.name("condition", word)
