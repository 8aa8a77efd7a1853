"""The messages in a real browser: axe-core finds nothing, and nothing is wider than the screen.

Needs Chromium, Node.js and what `make browser` installs from package-lock.json; skipped, with the reason, without.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from fakes.kinds import KIND, kinds_in_arabic
from notices.jobs import Job, Requester
from notices.kinds import load_catalogue
from notices.message import BaseUrls, render
from notices_cli.gallery import SCHEMES, gallery, shown

HERE = Path(__file__).parent
BASE_URLS = BaseUrls("https://hq.example.com", "https://app.example.com")
AWKWARD = {
    "long": "An_unbroken_name_" * 118,
    "emoji": "👩‍👩‍👧‍👦" * 100,
    "marks": "Z̤͎a̩l̝g̥o̬" * 60,
    "mixed": "שלום (2) العربية <b>&amp;</b> ",
    "nothing": None,
}
SECONDS = 120
FEWEST_RULES = 15
BACKGROUNDS = {
    "gallery": {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"},
    None: {"light": "rgb(240, 242, 245)", "dark": "rgb(20, 24, 29)"},
}


def missing() -> str | None:
    """Why the messages cannot be looked at here."""
    if browser() is None:
        return "no Chromium is installed (Debian: apt-get install chromium)"
    if shutil.which("node") is None:
        return "no Node.js is installed"
    if not (HERE / "node_modules" / "playwright-core").is_dir():
        return "make browser has not been run, or has no npm"
    return None


def browser() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@dataclass(frozen=True)
class View:
    page: Path
    width: int
    scheme: str
    text: int = 1
    axe: bool = False


def pages(folder: Path) -> Iterator[Path]:
    """Every message of every kind in every language, and those with awkward values."""
    kinds = kinds_in_arabic(folder)
    messages = {
        f"{one.kind.name}-{one.outcome}-{one.audience}-{one.locale}-{one.job_id}": one.message for one in shown(kinds)
    }
    kind = next(kind for kind in load_catalogue(kinds).sound if kind.name == KIND)
    for (name, value), locale in product(AWKWARD.items(), ("de", "ar")):
        job = Job((value or "job-0001")[:100], kind.name, details=dict.fromkeys(kind.facts, value))
        requester = Requester("r", name=value, locale=locale)
        messages[f"awkward-{name}-{locale}"] = render(kind, "failed", job, requester, BASE_URLS)
    for name, message in messages.items():
        page = folder / f"{name}.html"
        page.write_text(message.html, encoding="utf-8")
        yield page
    page = folder / "gallery.html"
    page.write_text(gallery(kinds), encoding="utf-8")
    yield page


def views_of(page: Path) -> Iterator[View]:
    """How a page is looked at: on a small phone, in light and dark, and a message also with its text twice as large."""
    if page.stem.startswith("awkward"):
        yield from (View(page, 320, "light"), View(page, 320, "dark", text=2), View(page, 680, "light"))
        return
    yield from (View(page, 320, scheme, axe=True) for scheme in SCHEMES)
    if page.stem != "gallery":
        yield View(page, 320, "light", text=2)


def look(views: list[View], folder: Path) -> list[dict[str, Any]]:
    """Return what the browser saw of each view."""
    job = folder / "job.json"
    job.write_text(
        json.dumps({"browser": browser(), "views": [vars(view) | {"page": str(view.page)} for view in views]}), "utf-8"
    )
    with tempfile.TemporaryDirectory() as scratch:  # of its own: the path of Chromium's socket has to be short
        done = subprocess.run(
            ["node", HERE / "look.mjs", job],
            env={"PATH": os.environ["PATH"], "HOME": scratch, "TMPDIR": scratch},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=SECONDS,
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def problems(view: View, seen: dict[str, Any]) -> list[str]:
    """Return what is not right about one view."""
    found = [*seen["violations"], *seen["wide"], *(f"it loads {url}" for url in seen["loaded"])]
    if view.axe and seen["rules"] < FEWEST_RULES:
        found.append(f"axe had only {seen['rules']} rules to pass")
    if seen["background"] != BACKGROUNDS.get(view.page.stem, BACKGROUNDS[None])[view.scheme]:
        found.append(f"the background is {seen['background']}")
    return [f"{view.page.stem}, {view.width} pixels, {view.scheme}, text x{view.text}: {problem}" for problem in found]


# One test, because what costs is the browser, and tests of one file may run in several processes.
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_in_a_browser_axe_finds_nothing_nothing_is_wider_than_the_screen_and_dark_is_dark(tmp_path: Path) -> None:
    views = [view for page in pages(tmp_path) for view in views_of(page)]
    seen = look(views, tmp_path)
    assert [problem for pair in zip(views, seen, strict=True) for problem in problems(*pair)] == []


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_what_is_not_right_about_a_page_is_found(tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text(
        '<html><body><p style="color: #aaa; background: #fff">x</p><p style="width: 400px">y</p>'
        '<div style="width: 50px; overflow: hidden">unbroken_and_long</div><img src="https://example.com/x.png">',
        encoding="utf-8",
    )
    view = View(page, 320, "dark", axe=True)
    (seen,) = look([view], tmp_path)
    found = " ".join(problems(view, seen))
    for name in (
        "color-contrast",
        "html-has-lang",
        "image-alt",
        "reaches from",
        "is cut off",
        "it loads",
        "background",
    ):
        assert name in found
