"""What an index of packages is told beyond pyproject.toml: a README whose links lead somewhere, and where the project lives.

In: README.md, and PROJECT_URL, which the release sets to the address of the repository. Out: metadata. Links and pictures of
the README are relative to the repository, and an index has none: with PROJECT_URL they are made absolute, to the files of the
release's tag where GIT_TAG names one. Without it the README is told as it is, and no addresses are made up.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!\w+:|#)([^)]+)\)")


class IndexReadme(MetadataHookInterface):  # type: ignore[misc]
    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        url, tag = os.environ.get("PROJECT_URL", "").rstrip("/"), os.environ.get("GIT_TAG", "main")
        if url:
            text = with_links(text, url, tag)
            metadata["urls"] = {
                "Source": url,
                "Documentation": f"{url}/tree/{tag}/docs",
                "Changelog": f"{url}/blob/{tag}/CHANGELOG.md",
                "Issues": f"{url}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def with_links(text: str, url: str, tag: str) -> str:
    """Return the text with its relative links made absolute: pictures to the raw file, the rest to how it is shown."""

    def absolute(found: re.Match[str]) -> str:
        picture, title, target = found.groups()
        kind = "raw" if picture else "blob" if "." in target.rpartition("/")[2] or "/" not in target else "tree"
        return f"{picture}[{title}]({url}/{kind}/{tag}/{target})"

    return _RELATIVE.sub(absolute, text)
