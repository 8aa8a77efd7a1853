"""The message: what the requester reads (DESIGN 3.8; cases SE-09, SE-12, RE-01, RE-03, RE-06)."""

from __future__ import annotations

import html
import re
import unicodedata
import zoneinfo
from collections.abc import Callable, Iterator
from decimal import Decimal
from html.parser import HTMLParser
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.kinds import kinds_in_arabic, one_kind
from notices.audience import Audience
from notices.examples import check_catalogue, load_examples
from notices.facts import present_facts
from notices.jobs import Job, Requester
from notices.kinds import Kind, load_catalogue
from notices.links import link
from notices.locales import is_right_to_left
from notices.message import BaseUrls, Message, MessageError, render
from notices.passages import as_details
from notices.plain_text import one_line, shorten

CATALOGUE = load_catalogue().sound
MOMENT = "2026-03-01T09:59:00Z"
BASE_URLS = BaseUrls("https://hq.example.com", "https://app.example.com")
NAME = "workspace_provisioning"
AUDIENCES: tuple[Audience, ...] = ("staff", "customer")
TOLD = [
    pytest.param(kind, outcome, audience, id=f"{kind.name}-{outcome}-{audience}")
    for kind in CATALOGUE
    for outcome in kind.outcomes
    for audience in AUDIENCES
]
AWKWARD: dict[str, Any] = {
    "2,000 characters": "A very long name " * 120,
    "2,000 emoji": "👩‍👩‍👧‍👦" * 300,
    "combining marks": "Z̤͎a̩l̝g̥o̬" * 100,
    "right to left": "עולם שלום",
    "override": "\u202egnp.exe",
    "open isolate": "\u2067abc",
    "line breaks": "a\r\nBcc: spy@example.com\u2028b\u2029c\x85d\te\x0bf",
    "NUL": "a\x00b\x1b[31mc\x9f",
    "lone surrogate": "a\ud800b\udfffc",
    "split pair": "\ud83d\ude00",
    "template": "{{ 7*7 }}{% raw %}{# x #}",
    "script": "<script>alert('1')</script> & \"Co\"",
    "percent": "%s %(x)s {0} {workspace_id}",
    "mark of the layout": "\x02> quoted",
    "dash": "- item",
    "noncharacters": "\ufffe\uffff\ufdd0x",
    "integer": 7,
    "decimal": Decimal("1E+3"),
    "huge": Decimal("1E+120"),
    "infinite": float("inf"),
    "not a number": Decimal("NaN"),
    "flag": True,
    "list": ["a", None, {"b": None}],
    "map": {"a": None},
    "bytes": b"\xff",
}


def kind_of(name: str = NAME) -> Kind:
    return next(kind for kind in CATALOGUE if kind.name == name)


def told(
    outcome: str = "succeeded",
    *,
    audience: Audience = "customer",
    base_urls: BaseUrls = BASE_URLS,
    name: Any = "Dana Example",
    kind: Kind | None = None,
    time_zone: Any = None,
    locale: Any = None,
    job_id: str = "job-0001",
    **details: Any,
) -> Message:
    job = Job(job_id, NAME, details={"workspace_id": "ws-0001", "workspace_name": "Research"} | details)
    requester = Requester("req-dana", name=name, audience=audience, time_zone=time_zone, locale=locale)
    return render(kind or kind_of(), outcome, job, requester, base_urls)


class _Page(HTMLParser):
    """What a page shows, and the tags and links in it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.links: list[str | None] = []
        self._skipped = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._skipped += tag in {"style", "head"}
        if tag == "a":
            self.links.append(dict(attrs)["href"])
            assert "ses:no-track" in dict(attrs)

    def handle_endtag(self, tag: str) -> None:
        self._skipped -= tag in {"style", "head"}

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.words.append(data)

    @property
    def shown(self) -> str:
        return " ".join("".join(self.words).split())


def looks_right(message: Message) -> None:
    """What holds for every message, whatever the job and the requester are called."""
    parts = (message.subject, message.text, _Page(message.html).shown)
    for part in (message.subject, message.text, message.html):
        part.encode("utf-8")
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", part)
    for part in parts:
        assert not re.search(r"\bNone\b|\bundefined\b|“”|\"\"| ,", part)
    assert message.subject == message.subject.strip()
    assert 0 < len(message.subject) <= 150
    assert "\n" not in message.subject
    assert message.text.count("\u2068") == message.text.count("\u2069")
    assert message.html.count("<span") == message.html.count("</span>")
    assert len(message.html.encode()) < 102 * 1024


# Every kind


def _fillings(facts: tuple[str, ...]) -> Iterator[dict[str, str | None]]:
    """Every way in which facts are there, absent or empty; of many facts, every way in which two depart from the rest.

    All ways of twelve facts would be half a million messages.
    """
    values = ("x", None, "")
    if len(facts) <= 5:
        for filling in product(values, repeat=len(facts)):
            yield dict(zip(facts, filling, strict=True))
        return
    for rest, (one, other), (first, second) in product(values, combinations(facts, 2), product(values, repeat=2)):
        yield {**dict.fromkeys(facts, rest), one: first, other: second}


@pytest.mark.parametrize(("kind", "outcome", "audience"), TOLD)
def test_every_example_renders_and_looks_right(kind: Kind, outcome: str, audience: str) -> None:
    examples = [one for one in load_examples(kind) if (one.outcome, one.audience) == (outcome, audience)]
    assert examples
    for example, tag in product(examples, kind.languages):
        looks_right(example.message(kind, tag))


@pytest.mark.parametrize(("kind", "outcome", "audience"), TOLD)
def test_text_and_page_say_the_same(kind: Kind, outcome: str, audience: Audience) -> None:
    for example, tag in product(load_examples(kind), kind.languages):
        message = example.message(kind, tag)
        shown = _Page(message.html).shown
        for line in message.text.splitlines():
            for words in line.strip().removeprefix("- ").rstrip(":").split(": ", 1) if line else ():
                assert words in shown


@pytest.mark.parametrize(("kind", "outcome", "audience"), TOLD)
def test_any_fact_may_be_absent(kind: Kind, outcome: str, audience: Audience) -> None:
    for details in _fillings(tuple(kind.facts)):
        job = Job("job-1", kind.name, details=details)
        looks_right(render(kind, outcome, job, Requester("r", audience=audience), BASE_URLS))


@pytest.mark.parametrize("value", AWKWARD.values(), ids=AWKWARD)
@pytest.mark.parametrize(("kind", "outcome", "audience"), TOLD)
def test_any_value_renders(kind: Kind, outcome: str, audience: Audience, value: Any) -> None:
    job = Job("job-1", kind.name, details=dict.fromkeys(kind.facts, value))
    requester = Requester("r", name=value, audience=audience, locale=value, time_zone=value)
    message = render(kind, outcome, job, requester, BASE_URLS)
    looks_right(message)
    assert "49" not in message.text
    assert not {"script", "img"} & set(_Page(message.html).tags)


# What it says


def test_the_subject_says_first_what_happened_and_then_to_which_workspace() -> None:
    assert told("succeeded").subject == "Your workspace is ready: Research"
    assert told("failed").subject == "We could not set up your workspace: Research"


def test_a_failure_gives_its_reason_in_the_jobs_own_words() -> None:
    message = told("failed", failure_reason="The region is full.")
    assert "\n    The region is full.\n" in message.text
    assert "The region is full." in _Page(message.html).shown


def test_the_message_has_the_reference_and_whom_to_ask() -> None:
    staff, customer = (told(audience=audience, job_id="job-77").text for audience in AUDIENCES)
    assert "Reference: job-77" in staff
    assert "ask the platform team" in staff
    assert "ask our support team" in customer


@pytest.mark.parametrize("name", [None, "", "  ", "\u200b", 7.5j, ["x"]])
def test_a_greeting_does_without_a_name(name: Any) -> None:
    message = told(name=name)
    assert "\nHello,\n" in message.text
    assert ">Hello,<" in message.html


def test_a_null_fact_reads_like_a_missing_one() -> None:
    kind, requester = kind_of(), Requester("r")
    missing = render(kind, "succeeded", Job("j", NAME, details={"workspace_id": "ws"}), requester, BASE_URLS)
    null = told(name=None, job_id="j", workspace_id="ws", workspace_name=None)
    assert null == missing
    assert null.subject == "Your workspace is ready"


def test_a_fact_that_the_kind_does_not_declare_is_ignored() -> None:
    assert told(new_fact={"a": 1}) == told()


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("Europe/Vienna", "1 March 2026 at 10:59 (Europe/Vienna time, UTC+1)"),
        ("America/New_York", "1 March 2026 at 04:59 (America/New York time, UTC-5)"),
        ("Asia/Kolkata", "1 March 2026 at 15:29 (Asia/Kolkata time, UTC+5:30)"),
        ("Pacific/Kiritimati", "1 March 2026 at 23:59 (Pacific/Kiritimati time, UTC+14)"),
        *[
            (zone, "1 March 2026 at 09:59 UTC")
            for zone in (None, "", "Etc/UTC", "Zulu", "Mars/Base", "../etc", "Europe", "a\0b", 7)
        ],
    ],
)
def test_times_are_on_the_readers_clock_or_in_utc(zone: Any, shown: str) -> None:
    message = told(time_zone=zone, finished_at=MOMENT)
    assert f"When: {shown}\n" in message.text
    assert shown in _Page(message.html).shown


def test_times_are_in_utc_on_a_machine_without_zone_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> None:
        raise zoneinfo.ZoneInfoNotFoundError(name)

    monkeypatch.setattr(zoneinfo, "ZoneInfo", unknown)
    message = told(time_zone="Europe/Vienna", finished_at=MOMENT)
    assert "When: 1 March 2026 at 09:59 UTC\n" in message.text


def test_zone_data_is_shipped_for_machines_that_have_none() -> None:
    zoneinfo.ZoneInfo.clear_cache()
    zoneinfo.reset_tzpath(to=[])
    try:
        assert "(Europe/Vienna time, UTC+1)" in told(time_zone="Europe/Vienna", finished_at=MOMENT).text
    finally:
        zoneinfo.reset_tzpath()


def test_the_hour_that_comes_twice_when_clocks_go_back_is_told_apart() -> None:
    first, second = (told(time_zone="Europe/Vienna", finished_at=f"2026-10-25T0{hour}:30:00Z").text for hour in (0, 1))
    assert "02:30 (Europe/Vienna time, UTC+2)" in first
    assert "02:30 (Europe/Vienna time, UTC+1)" in second


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59+00:00"])
def test_the_first_and_last_times_of_all_are_told(moment: str, zone: str) -> None:
    assert "When: " in told(time_zone=zone, finished_at=moment).text


@pytest.mark.parametrize(
    "value", ["2026-03-01T09:59:00.000000+0000", " 2026-03-01T10:59:00+01:00 ", "20260301T095900Z"]
)
def test_a_time_is_read_however_iso_8601_writes_it(value: str) -> None:
    assert "When: 1 March 2026 at 09:59 UTC\n" in told(finished_at=value).text


@pytest.mark.parametrize("value", ["2026-03-01", "2026-03-01T09:59:00", "noon", "", 1772359140, True, None, []])
def test_a_time_that_names_no_moment_is_absent(value: Any) -> None:
    assert told(finished_at=value) == told()


# The reader's language


@pytest.mark.parametrize("locale", ["de", "de-AT", "de_CH.UTF-8", "DE", "de-DE-u-co-phonebk"])
def test_a_german_reader_is_told_in_german(locale: str) -> None:
    message = told("failed", locale=locale, failure_reason="x", time_zone="Europe/Vienna", finished_at=MOMENT)
    assert message.subject == "Wir konnten Ihren Arbeitsbereich nicht einrichten: Research"
    assert "Zeitpunkt: 1. März 2026 um 10:59 Uhr (Zeitzone Europe/Vienna, UTC+1)\n" in message.text
    assert "\nGuten Tag Dana Example,\n" in message.text
    assert '<html lang="de" dir="ltr">' in message.html


@pytest.mark.parametrize("locale", ["fr-CA", "x", "", None, "../de", 7])
def test_a_reader_of_another_language_is_told_in_the_kinds_default(locale: Any) -> None:
    assert told(locale=locale) == told(locale="en")


@pytest.mark.parametrize(
    ("tag", "rtl"),
    [("ar", True), ("he-IL", True), ("az-Arab", True), ("en", False), ("ks-Deva", False), ("ar-Latn-MA", False)],
)
def test_the_way_a_language_is_written_goes_by_its_script_and_else_by_the_language(tag: str, rtl: bool) -> None:
    assert is_right_to_left(tag) is rtl


# Links


def test_the_same_percent_encoded_link_is_in_both_parts() -> None:
    message = told(workspace_id="ws 1/2&x=ü")
    url = "https://app.example.com/workspaces/ws%201%2F2%26x%3D%C3%BC"
    assert f"\n{url}\n" in message.text
    assert _Page(message.html).links == [url]


def test_an_ampersand_of_the_path_is_escaped_in_the_page_only() -> None:
    message = told(base_urls=BaseUrls(customer="https://app.example.com/?a=1&b="))
    assert "?a=1&b=/workspaces" in message.text
    assert "?a=1&amp;b=/workspaces" in message.html


@pytest.mark.parametrize("audience", AUDIENCES)
def test_nobody_gets_the_link_of_another_audience(audience: Audience) -> None:
    other = BaseUrls(staff="https://hq.example.com") if audience == "customer" else BaseUrls(customer="https://app")
    message = told(audience=audience, base_urls=other)
    assert "https" not in message.text
    assert _Page(message.html).links == []
    assert "comes without a link. If you need one, please ask" in message.text


@pytest.mark.parametrize("value", [None, "", ".", "..", "\ud800", ["x"], True, "x" * 3000])
def test_a_value_that_makes_no_safe_link_makes_none(value: Any) -> None:
    message = told(workspace_id=value)
    assert "://" not in message.text
    assert _Page(message.html).links == []


@pytest.mark.parametrize(
    ("path", "values", "url"),
    [
        ("/w/{a}", {"a": "%2e%2e"}, "https://x/y/w/%252e%252e"),
        ("/w/{a}/b", {"a": "../../admin"}, "https://x/y/w/..%2F..%2Fadmin/b"),
        ("/w?id={a}", {"a": ".."}, "https://x/y/w?id=.."),
        ("/w/.{a}", {"a": "."}, None),
        ("/w/{a}#{b}", {"a": "..", "b": "top"}, None),
        ("/w#{a}", {"a": ".."}, "https://x/y/w#.."),
        ("/w/{a}", {"a": "{b}", "b": "z"}, "https://x/y/w/%7Bb%7D"),
    ],
)
def test_a_value_stays_within_its_place_in_the_path(path: str, values: dict[str, str], url: str | None) -> None:
    assert link(" https://x/y/ ", path, values) == url


# Escaping


def test_the_page_is_escaped_and_the_text_and_subject_are_not() -> None:
    name = "<img src=x onerror=alert(1)> & \"Co\" 'q'"
    message = told(workspace_name=name)
    assert message.subject == f"Your workspace is ready: {name}"
    assert f"the workspace {name} that" in message.text
    assert html.escape(name).replace("&quot;", "&#34;").replace("&#x27;", "&#39;") in message.html
    assert "<img" not in message.html


@settings(deadline=None)  # a busy machine is no fault
@given(st.text())
def test_no_value_adds_a_tag_to_the_page(value: str) -> None:
    tags = _Page(told("failed", workspace_name="x", failure_reason="x", name="x").html).tags
    page = _Page(told("failed", workspace_name=f"x{value}", failure_reason=f"x{value}", name=f"x{value}").html)
    assert [tag for tag in page.tags if tag != "span"] == [tag for tag in tags if tag != "span"]


@settings(deadline=None)  # a busy machine is no fault
@given(st.text(st.characters(exclude_categories=[])))
def test_the_subject_is_one_short_printable_line(value: str) -> None:
    subject = told(workspace_name=value).subject
    assert len(subject) <= 150
    assert subject == subject.strip()
    assert not {unicodedata.category(char) for char in subject} & {"Cc", "Cs", "Zl", "Zp"}


@settings(deadline=None)  # a busy machine is no fault
@given(st.text(st.characters(exclude_categories=[])))
def test_cleaning_twice_changes_nothing(value: str) -> None:
    assert one_line(one_line(value)) == one_line(value)


# Long and mixed


@pytest.mark.parametrize(
    "one",
    ["e\u0301", "👩‍👩‍👧‍👦", "👍🏽", "🇦🇹", "क्षि", "각", "❤️", "🏴\U000e0067\U000e0062\U000e007f"],
)
@settings(deadline=None)  # a busy machine is no fault
@given(offset=st.integers(0, 12))
def test_a_long_value_is_never_cut_within_a_character(one: str, offset: int) -> None:
    cut = shorten("x" * offset + one * 200, 100)
    assert len(cut) <= 100
    assert re.fullmatch(f"x{{{offset}}}(?:{re.escape(one)})*…", cut)


def test_a_value_that_is_all_one_character_is_cut_somewhere() -> None:
    assert len(shorten("e" + "\u0301" * 5000, 150)) == 150


def test_text_that_runs_the_other_way_is_isolated() -> None:
    message = told(workspace_name="שלום")
    assert "the workspace \u2068שלום\u2069 that" in message.text  # noqa: RUF001
    assert 'the workspace <span dir="rtl">שלום</span> that' in message.html
    assert message.subject == "Your workspace is ready: שלום"
    assert "\u2068" not in told().text


@pytest.fixture(scope="module")
def arabic(tmp_path_factory: pytest.TempPathFactory) -> Kind:
    kinds = check_catalogue(kinds_in_arabic(tmp_path_factory.mktemp("kinds"))).sound
    return next(kind for kind in kinds if kind.name == NAME)


def test_a_language_written_from_right_to_left_is_laid_out_so(arabic: Kind) -> None:
    message = told(kind=arabic, locale="ar-EG", time_zone="Africa/Cairo", finished_at=MOMENT)
    page = message.html
    assert page.count('lang="ar" dir="rtl"') == 2
    assert "text-align: right" in page
    assert "text-align: left" not in page
    assert "padding-right: 24px" in page  # of the list
    assert 'align="right"' in page
    assert "توقيت \u2068Africa/Cairo\u2069" in message.text


def test_text_from_left_to_right_is_isolated_in_a_language_from_right_to_left(arabic: Kind) -> None:
    message = told(kind=arabic, locale="ar", workspace_name="Research (2)", job_id="2026-job-1")
    assert "مساحة العمل \u2068Research (2)\u2069 التي" in message.text
    assert 'مساحة العمل <span dir="ltr">Research (2)</span> التي' in message.html
    assert ": \u20682026-job-1\u2069\n" in message.text
    assert "\u2068" not in message.subject


def test_a_time_within_a_text_is_isolated_as_a_whole_and_its_zone_within_it(arabic: Kind) -> None:
    page = told(kind=arabic, locale="ar", time_zone="Africa/Cairo", finished_at=MOMENT).html
    assert re.search(r'<span dir="rtl">1/3/2026.*<span dir="ltr">Africa/Cairo</span>', page)


@pytest.mark.parametrize("value", AWKWARD.values(), ids=AWKWARD)
@pytest.mark.parametrize("locale", ["en", "de", "ar"])
def test_any_value_renders_in_every_language(arabic: Kind, locale: str, value: Any) -> None:
    for outcome, audience in product(arabic.outcomes, AUDIENCES):
        job_id = value if isinstance(value, str) else "job-1"
        job = Job(job_id, NAME, details=dict.fromkeys(arabic.facts, value))
        requester = Requester("r", name=value, audience=audience, locale=locale, time_zone=value)
        looks_right(render(arabic, outcome, job, requester, BASE_URLS))


def test_a_fact_cannot_pass_for_a_quotation_or_a_list() -> None:
    message = told("failed", failure_reason="- a\n\n> b")
    assert "\n    - a > b\n" in message.text
    assert _Page(message.html).tags.count("blockquote") == 1
    assert "ul" not in _Page(message.html).tags


# Facts by type


def test_facts_are_present_only_when_they_fit_their_type() -> None:
    declared: Any = {"a": "text", "b": "number", "c": "flag", "d": "list", "e": "long_text"}
    details = {"a": Decimal("1E+3"), "b": 2.50, "c": False, "d": ["x", None, 3], "e": "y\n\nz"}
    assert present_facts(declared, details) == {
        "a": "1000",
        "b": Decimal("2.5"),
        "c": False,
        "d": ["x", "3"],
        "e": "y z",
    }
    assert present_facts(declared, {"a": True, "b": "2", "c": "no", "d": [None], "e": b"x"}) == {}


# What cannot be written


@pytest.fixture
def wording(tmp_path: Path) -> Callable[[str], Kind]:
    def wording(body: str) -> Kind:
        one_kind(tmp_path)
        words = "{% block subject %}Done\n\n{% endblock %}{% block link %}Open{% endblock %}{% block body %}"
        path = tmp_path / "kinds" / NAME / "en" / "failed.j2"
        path.write_text(f"{words}\n{body}\n{{% endblock %}}\n", encoding="utf-8")
        (kind,) = load_catalogue(tmp_path / "kinds").sound
        return kind

    return wording


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("{{ facts.failure_reason }}", "'failure_reason' is absent"),
        ("{{ facts.failure_reason | upper }}", "'failure_reason' is absent"),
        ("{{ facts.failure_reason ~ '!' }}", "'failure_reason' is absent"),
        ("{{ facts.failure_reason + 'x' }}", "'failure_reason' is absent"),
        ("{% for line in facts.failure_reason %}{% endfor %}", "'failure_reason' is absent"),
        ("{% if facts.failure_reason == 'x' %}{% endif %}", "'failure_reason' is absent"),
        ("{{ facts.workspace_name.secret }}", "'secret' is absent"),
        ("{{ facts.workspace_name[99] }}", "something it uses is absent"),
        ("{{ none }}", "NoneType"),
        ("{{ audience | default(none) }}{{ [] | first }}", "absent"),
        ("{{ [1] }}", "a list, which is not a text"),
        ("{{ true }}", "bool"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ facts.workspace_name | int('x') / 0 }}", "TypeError"),
        ("{% if false %}x{% endif %}", "the block 'body' is empty"),
        ("x{% endblock %}{% block details %}{{ facts.failure_reason }}: x", "'failure_reason' is absent"),
    ],
)
def test_a_text_that_cannot_be_written_is_a_template_error(
    wording: Callable[[str], Kind], body: str, says: str
) -> None:
    with pytest.raises(MessageError) as caught:
        told("failed", kind=wording(body), workspace_name="Confidential", name="Dana Example")
    error = caught.value
    assert error.code == "template_error"
    assert says in str(error)
    assert f"{NAME}/en/failed.j2" in str(error)
    assert "Confidential" not in str(error)
    assert "Dana" not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None
    assert len(f"{error.code}: {error}") <= 256


def test_a_text_can_do_without_a_fact_in_several_ways(wording: Callable[[str], Kind]) -> None:
    fact = "facts.failure_reason"
    body = f"{{{{ {fact} | default('a') }}}}{{{{ {fact} or 'b' }}}}{{% if not {fact} %}}c{{% endif %}}"
    assert "\nabc\n" in told("failed", kind=wording(body)).text


def test_a_subject_template_that_ends_in_line_breaks_is_one_line(wording: Callable[[str], Kind]) -> None:
    assert told("failed", kind=wording("x")).subject == "Done"


def test_lists_and_paragraphs_are_laid_out_in_both_parts(wording: Callable[[str], Kind]) -> None:
    message = told("failed", kind=wording("One\ntwo & <b>.\n\n- a\n  more\n- b\n\nEnd."))
    assert "\nOne two & <b>.\n\n- a more\n- b\n\nEnd.\n" in message.text
    assert "One two &amp; &lt;b&gt;.</p>" in message.html
    assert _Page(message.html).tags.count("li") == 2


def test_a_line_that_ends_in_a_tag_is_not_joined_to_the_next(wording: Callable[[str], Kind]) -> None:
    kind = wording("One{% if true %} more{% endif %}\ntwo {# remark #}\nthree.{% if true %} So{% endif %}\n\nEnd.")
    assert "\nOne more two three. So\n\nEnd.\n" in told("failed", kind=kind).text


def test_a_line_of_tags_alone_leaves_no_line_behind(wording: Callable[[str], Kind]) -> None:
    assert "\nOne two\n" in told("failed", kind=wording("One\n{% if true %} {# remark #}\ntwo\n{% endif %}")).text


def test_a_line_of_details_without_a_label_keeps_its_words() -> None:
    assert as_details("Label: value\nNo label\na:b\nEmpty:\nSeen: at: ten:") == [
        ("Label", "value"),
        ("", "No label"),
        ("", "a:b"),
        ("Seen", "at: ten:"),
    ]


def test_a_line_of_details_without_a_label_is_in_both_parts(wording: Callable[[str], Kind]) -> None:
    # The check refuses such a line; what it cannot see is one that only a value makes so.
    kind = wording("x{% endblock %}{% block details %}\n{{ facts.failure_reason or 'Kept: not at all' }}")
    message = told("failed", kind=kind, failure_reason="kept for a week")
    assert "\nkept for a week\nReference: job-0001\n" in message.text
    assert re.search(r'<td [^>]*colspan="2"[^>]*>kept for a week</td>', message.html)
    assert "\nKept: not at all\n" in told("failed", kind=kind).text


def test_an_outcome_that_the_kind_does_not_tell_is_a_message_error() -> None:
    with pytest.raises(MessageError, match="no such outcome"):
        told("cancelled")


def test_a_page_loads_nothing_from_elsewhere() -> None:
    page = told().html
    assert not re.search(r"<(img|link|script|iframe)|src=|@import|url\(", page)
    assert re.search(r'<html lang="en" dir="ltr">', page)


def test_the_number_zero_is_defined_and_can_be_told(wording: Callable[[str], Kind], tmp_path: Path) -> None:
    body = "{% if facts.rooms is defined %}{{ facts.rooms }} rooms{% else %}No word of rooms{% endif %}"
    wording("x")
    kinds = tmp_path / "kinds" / NAME
    declared = (kinds / "kind.toml").read_text(encoding="utf-8").replace("[facts]", '[facts]\nrooms = "number"')
    (kinds / "kind.toml").write_text(declared, encoding="utf-8")
    text = (kinds / "en" / "failed.j2").read_text(encoding="utf-8").replace("\nx\n", f"\n{body}\n")
    (kinds / "en" / "failed.j2").write_text(text, encoding="utf-8")
    (kind,) = load_catalogue(tmp_path / "kinds").sound
    assert "\n0 rooms\n" in told("failed", kind=kind, rooms=0).text
    assert "\nNo word of rooms\n" in told("failed", kind=kind, rooms=None).text
