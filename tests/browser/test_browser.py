"""The messages in a real browser: axe-core finds nothing, and nothing is wider than the screen.

Needs Chromium, Node.js and what `make browser` installs from package-lock.json; skipped, with the reason, without.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from fakes.arabic import kinds_in_arabic
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


pytestmark = [
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.xdist_group("browser"),
]


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
    (kind,) = load_catalogue(kinds).sound
    for (name, value), locale in product(AWKWARD.items(), ("de", "ar")):
        job = Job(str(value)[:128], kind.name, details=dict.fromkeys(kind.facts, value))
        requester = Requester("r", name=value, locale=locale)
        messages[f"awkward-{name}-{locale}"] = render(kind, "failed", job, requester, BASE_URLS)
    for name, message in messages.items():
        page = folder / f"{name}.html"
        page.write_text(message.html, encoding="utf-8")
        yield page
    page = folder / "gallery.html"
    page.write_text(gallery(kinds), encoding="utf-8")
    yield page


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[View, dict[str, Any]]]:
    """What the browser saw of each view."""
    folder = tmp_path_factory.mktemp("pages")
    views = []
    for page in pages(folder):
        awkward = page.stem.startswith("awkward")
        views += [View(page, 320, scheme, axe=not awkward) for scheme in SCHEMES]
        if page.stem != "gallery":
            views.append(View(page, 320, "light", text=2))
        if awkward:
            views.append(View(page, 680, "light"))
    job = folder / "job.json"
    job.write_text(
        json.dumps({"browser": browser(), "views": [vars(view) | {"page": str(view.page)} for view in views]}), "utf-8"
    )
    done = subprocess.run(
        ["node", HERE / "look.mjs", job],
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return list(zip(views, json.loads(done.stdout), strict=True))


def test_axe_finds_nothing_in_any_message_in_light_and_dark(looked: list[tuple[View, dict[str, Any]]]) -> None:
    assert [(view.page.stem, view.scheme, seen["violations"]) for view, seen in looked if seen["violations"]] == []
    assert {view.scheme for view, seen in looked if view.axe and seen["rules"] > 20} == {"light", "dark"}


def test_nothing_is_wider_than_the_screen_or_cut_off(looked: list[tuple[View, dict[str, Any]]]) -> None:
    assert [(view.page.stem, view.width, view.text, seen["wide"]) for view, seen in looked if seen["wide"]] == []


def test_a_message_loads_nothing(looked: list[tuple[View, dict[str, Any]]]) -> None:
    assert [(view.page.stem, seen["loaded"]) for view, seen in looked if seen["loaded"]] == []


def test_dark_mode_is_dark(looked: list[tuple[View, dict[str, Any]]]) -> None:
    messages = [(view, seen) for view, seen in looked if view.page.stem != "gallery"]
    assert {(view.scheme, seen["background"]) for view, seen in messages} == {
        ("light", "rgb(240, 242, 245)"),
        ("dark", "rgb(20, 24, 29)"),
    }
