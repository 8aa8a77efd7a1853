"""One page with every message that went out, to open in a browser."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from demo.mail_front import SentMail

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The demo's messages</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }}
article {{ border: 1px solid #999; border-radius: 8px; margin: 2rem 0; overflow: hidden; }}
header, details {{ padding: 1rem; background: #f2f2f2; color: #222; }}
h2 {{ margin: 0; font-size: 1.1rem; }}
iframe {{ width: 100%; height: 46rem; border: 0; }}
pre {{ white-space: pre-wrap; }}
</style>
<h1>{count} messages went out</h1>
{articles}
</html>
"""

_ARTICLE = """<article>
<header><h2>{subject}</h2>From {sender}<br>To {recipient}</header>
<iframe title="{subject}" sandbox srcdoc="{html}"></iframe>
<details><summary>The text part</summary><pre>{text}</pre></details>
</article>"""


def page(mails: Sequence[SentMail]) -> str:
    """Return the page."""
    articles = "\n".join(
        _ARTICLE.format(
            subject=escape(mail.subject),
            sender=escape(mail.sender),
            recipient=escape(mail.recipient),
            html=escape(mail.html),
            text=escape(mail.text),
        )
        for mail in mails
    )
    return _PAGE.format(count=len(mails), articles=articles or "<p>Mail is sent in production only.</p>")
