"""Every message there is, to look at: kind by outcome by audience by language (DESIGN 3.8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from markupsafe import Markup

from notices.audience import Audience
from notices.examples import load_examples
from notices.kind_files import KindError, listed
from notices.kinds import Kind, load_catalogue
from notices.message import Message

PHONE, DESKTOP = 320, 680
SCHEMES = ("light", "dark")


@dataclass(frozen=True, slots=True)
class Shown:
    """One example, told in one language."""

    kind: Kind
    outcome: str
    audience: Audience
    locale: str
    job_id: str
    message: Message

    @property
    def title(self) -> str:
        """What it is, in a line."""
        return f"{self.kind.title}: {self.outcome}, to {self.audience}, in {self.locale} ({self.job_id})"


def shown(
    folder: Path,
    name: str | None = None,
    outcome: str | None = None,
    audience: str | None = None,
    locale: str | None = None,
) -> list[Shown]:
    """Return the messages of the kinds in `folder`, all or only those that are named.

    Raises:
        KindError: a kind is broken or does not render, or there is nothing of that name.
    """
    catalogue = load_catalogue(folder)
    chosen = [kind for kind in catalogue if name in (None, kind.name)]
    if not chosen:
        raise KindError(folder / str(name), f"there is no such kind. Use {listed(kind.name for kind in catalogue)}.")
    for broken in catalogue.broken:
        if broken in chosen:
            raise broken.fault
    found = [one for kind in catalogue.sound if kind in chosen for one in _messages(kind)]
    wanted = [
        one
        for one in found
        if outcome in (None, one.outcome) and audience in (None, one.audience) and locale in (None, one.locale)
    ]
    if not wanted:
        raise KindError(folder, f"nothing is shown of that choice. There is {listed({one.title for one in found})}.")
    return wanted


def in_scheme(page: str, scheme: str) -> str:
    """Return a message's page as somebody sees it who has set light or dark, whatever this machine is set to."""
    applies = "all" if scheme == "dark" else "not all"
    return page.replace("@media (prefers-color-scheme: dark)", f"@media {applies}").replace("light dark", scheme)


def gallery(folder: Path) -> str:
    """Return a page of every message: on a phone and a desktop, light and dark, and as plain text.

    Raises:
        KindError: a kind is broken or does not render.
    """
    messages = shown(folder)
    return _PAGE.format(
        contents=_joined(map(_entry, messages, count())), messages=_joined(map(_section, messages, count()))
    )


def _messages(kind: Kind) -> Iterable[Shown]:
    for example in load_examples(kind):
        for language in kind.languages.values():
            message = example.told_in(kind, language.tag)
            yield Shown(kind, example.outcome, example.audience, language.tag, example.job.job_id, message)


def _entry(one: Shown, number: int) -> Markup:
    return Markup('<li><a href="#message-{}">{}</a>: <bdi>{}</bdi></li>').format(number, one.title, one.message.subject)


def _section(one: Shown, number: int) -> Markup:
    frames = _joined(
        Markup(
            '<figure><figcaption>{} pixels, {}</figcaption><iframe title="{}, {} pixels, {}" width="{}" height="900"'
            ' loading="lazy" sandbox="allow-same-origin" srcdoc="{}"></iframe></figure>'
        ).format(width, scheme, one.title, width, scheme, width, in_scheme(one.message.html, scheme))
        for width in (PHONE, DESKTOP)
        for scheme in SCHEMES
    )
    return Markup(
        '<section id="message-{}"><h2>{}</h2><p>Subject: <strong><bdi>{}</bdi></strong>. The page has {:.1f} KB.</p>'
        '<div class="frames">{}</div><h3>As plain text</h3><pre dir="{}" lang="{}">{}</pre></section>'
    ).format(
        number,
        one.title,
        one.message.subject,
        len(one.message.html.encode()) / 1024,
        frames,
        "rtl" if one.kind.language(one.locale).rtl else "ltr",
        one.locale,
        one.message.text,
    )


def _joined(parts: Iterable[Markup]) -> Markup:
    return Markup("\n").join(parts)


_PAGE = Markup("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Every message</title>
<style>
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; padding: 16px; max-width: 1440px; font: 16px/1.5 system-ui, sans-serif; }}
body {{ color: #1b2530; background: #fff; }}
h1, h2, li, p {{ overflow-wrap: anywhere; }}
a {{ color: #0f5bb5; }}
section {{ border-top: 1px solid #8888; padding: 16px 0 32px; }}
.frames {{ display: flex; flex-wrap: wrap; gap: 16px; align-items: flex-start; }}
figure {{ margin: 0; max-width: 100%; }}
iframe {{ display: block; border: 0; outline: 1px solid #8888; max-width: 100%; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid #8888; padding: 16px; max-width: 80ch; }}
@media (prefers-color-scheme: dark) {{
  body {{ color: #eef1f4; background: #14181d; }}
  a {{ color: #8db9f5; }}
}}
</style>
</head>
<body>
<main>
<h1>Every message</h1>
<ul>
{contents}
</ul>
{messages}
</main>
<script>
// Each frame as high as its message.
for (const frame of document.querySelectorAll("iframe")) {{
  const fit = () => {{
    frame.height = 1;
    frame.height = frame.contentDocument.documentElement.scrollHeight;
  }};
  frame.addEventListener("load", fit);
  if (frame.contentDocument && frame.contentDocument.readyState === "complete") fit();
}}
</script>
</body>
</html>
""")
