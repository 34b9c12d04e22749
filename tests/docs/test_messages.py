"""The page about messages has every message of the code, and no message that nobody says."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

from messages import FILLED_IN, all_messages

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "troubleshooting.md"
_CAPITALS = re.compile(r"\b[A-Z]{2,}\b|\b[A-Z]\b")
_SEVERAL = re.compile(rf"{FILLED_IN}(?:[ .,]*{FILLED_IN})*[ .:]*$")


def spelled(text: str) -> str:
    """Return a message with one sign for all that is filled in: on the page that is words in capitals."""
    return _SEVERAL.sub(FILLED_IN, _CAPITALS.sub(FILLED_IN, text)).rstrip(" .")


def told() -> set[str]:
    rows = re.findall(r"^\| `(.+?)` (?:without a number )?\|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {spelled(text) for text in rows}


def said() -> dict[str, str]:
    return {
        spelled(message.text if message.text[-1] != ":" else f"{message.text} {FILLED_IN}"): message.file
        for message in all_messages()
    }


def test_every_message_of_the_code_is_on_the_page() -> None:
    page = told()
    missing = [f"{file}: {text}" for text, file in said().items() if text not in page and f"preemption: {text}" not in page]
    assert not missing, "docs/how-to/troubleshooting.md does not tell what these mean:\n" + "\n".join(missing)


def test_every_message_on_the_page_is_one_of_the_code() -> None:
    assert not told() - set(said()), "nobody says this any more"


def test_a_message_that_is_new_would_be_missed() -> None:
    assert spelled("node(s) were painted in the wrong colour") not in told()
    assert len(said()) > 150


def test_every_reason_that_kube_scheduler_was_recorded_with_is_on_the_page() -> None:
    rows = re.findall(r"^\| `(.+?)` (?:without a number )?\|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    page = re.compile("|".join(".*".join(map(re.escape, _CAPITALS.split(row.rstrip(".")))) + "[.]?" for row in rows), re.DOTALL)
    recorded = set()
    for family in sorted((ROOT / "tests" / "conformance").rglob("*.jsonl.gz")):
        for found in re.findall(rb'"reasons": ?(\[.*?"\])', gzip.decompress(family.read_bytes())):
            recorded.update(json.loads(found))
    assert len(recorded) > 200
    assert not [text for text in recorded if not page.fullmatch(text)]
