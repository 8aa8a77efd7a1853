"""One page that shows messages as their readers would see them, to open in a browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from notices.message import Message


@dataclass(frozen=True, slots=True)
class Shown:
    """A message and what it is an example of."""

    title: str
    message: Message


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem; color: #222; }}
article {{ border: 1px solid #999; border-radius: 8px; margin: 2rem 0; overflow: hidden; }}
header {{ padding: 1rem; background: #f2f2f2; }}
h2 {{ margin: 0; font-size: 1.1rem; }}
.parts {{ display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); }}
@media (max-width: 60rem) {{ .parts {{ grid-template-columns: minmax(0, 1fr); }} }}
iframe {{ width: 100%; height: 38rem; border: 0; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; padding: 1rem; border-left: 1px solid #ccc; }}
</style>
<h1>{title}</h1>
<p>{note}</p>
{articles}
</html>
"""

_ARTICLE = """<article>
<header><h2>{title}</h2>Subject: {subject}</header>
<div class="parts"><iframe title="{title}" sandbox srcdoc="{html}"></iframe><pre>{text}</pre></div>
</article>"""


def page(title: str, note: str, messages: Sequence[Shown]) -> str:
    """Return the page: each message as HTML and, beside it, as text."""
    articles = "\n".join(
        _ARTICLE.format(
            title=escape(shown.title),
            subject=escape(shown.message.subject),
            html=escape(shown.message.html),
            text=escape(shown.message.text),
        )
        for shown in messages
    )
    return _PAGE.format(title=escape(title), note=escape(note), articles=articles)
