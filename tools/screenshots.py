"""Take pictures of the page's views and of a report: those that the README and docs show into docs/, all others into
build/screenshots to be looked at.

In: nothing; a demo of its own with some thousand pods. Out: PNG files. Needs chromium on the path.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests" / "e2e"))

from browser import CHROMIUM, Page, browsing  # noqa: E402
from demos import Running, running  # noqa: E402

KUBESCHED = [sys.executable, "-c", "from kubesched.cli import main; main()"]

SHOTS = [
    ("page", "#map", 1280, 820, "light", "document.querySelector('.brief .card')"),
    ("map-dark", "#map", 1280, 820, "dark", "document.querySelector('.brief .card')"),
    ("map-phone", "#map", 390, 1400, "light", "document.querySelector('.brief .card')"),
    ("pending", "#pending", 1280, 820, "light", "document.querySelector('.advice')"),
    ("pod-waiting", "#pod/demo/whale", 1280, 1100, "light", "document.querySelector('.funnel')"),
    ("pod-waiting-phone", "#pod/demo/whale", 390, 2200, "dark", "document.querySelector('.funnel')"),
    ("decision", "#pod/demo/cache-0", 1280, 900, "light", "document.querySelector('.scores')"),
    ("decision-dark", "#pod/demo/cache-0", 1280, 900, "dark", "document.querySelector('.scores')"),
    ("decisions", "#decisions", 1280, 820, "light", "document.querySelector('decisions-view tbody tr')"),
    ("try", "#try", 1280, 1400, "light", "document.querySelector('.weights input')"),
    ("try-phone", "#try", 390, 2200, "dark", "document.querySelector('.weights input')"),
    ("node", "#node/node-009", 1280, 820, "light", "document.querySelector('node-view table')"),
    ("time", "#time", 1280, 900, "light", "document.querySelectorAll('.plot').length === 6"),
    ("time-dark", "#time", 1280, 900, "dark", "document.querySelectorAll('.plot').length === 6"),
    ("configuration", "#configuration", 1280, 1200, "light", "document.querySelector('.points')"),
]
_SHOWN = ("page", "decision", "report")
_SETTLE_SECONDS = 0.5


async def take(page: Page, address: str, folder: Path) -> None:
    for name, view, width, height, scheme, wanted in SHOTS:
        await page.look(width, height, scheme)
        await page.open(address + view)
        await page.until(f"document.body.dataset.ready === 'yes' && Boolean({wanted})")
        if view == "#try":
            await page.click(".main", "Plan")
            await page.until("Boolean(document.querySelector('try-view .sentence'))")
            await page.run("scrollTo(0, 0)")
        await asyncio.sleep(_SETTLE_SECONDS)  # for what is drawn after the last answer
        await save(page, name, folder)


async def take_report(page: Page, folder: Path) -> None:
    examples, file = TOP / "docs" / "examples", folder / "report.html"
    words = [
        "compare",
        "default",
        str(examples / "packing.yaml"),
        "--scenario",
        str(examples / "batch.yaml"),
        "--html",
        str(file),
    ]
    await asyncio.to_thread(subprocess.run, [*KUBESCHED, *words], check=True, stdout=subprocess.DEVNULL)
    for name, width, height, scheme in (
        ("report", 1280, 1330, "light"),
        ("report-dark", 1280, 3000, "dark"),
        ("report-phone", 390, 3000, "light"),
    ):
        await page.look(width, height, scheme)
        await page.open(file.as_uri())
        await page.until("document.body.dataset.ready === 'yes'")
        await save(page, name, folder)


async def save(page: Page, name: str, folder: Path) -> None:
    file = TOP / "docs" / f"{name}.png" if name in _SHOWN else folder / f"{name}.png"
    await asyncio.to_thread(file.write_bytes, await page.picture())
    print(file.relative_to(TOP))


async def main() -> None:
    folder = TOP / "build" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    with running("--nodes", "48", "--pods", "1500") as demo:
        await asyncio.to_thread(Running.until, demo, "Ctrl-C")
        async with browsing() as page:
            await take(page, demo.page, folder)
            await take_report(page, folder)


if __name__ == "__main__":
    if CHROMIUM is None:
        sys.exit("no chromium on the path (Debian: chromium)")
    asyncio.run(main())
