"""The table, the JSON and the picture of one run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FLOOR_MS = 5 * 10.0  # five calls that wait for each other, at 10 ms


@dataclass(frozen=True, slots=True)
class Target:
    """A line of the targets: what was measured, and what it must be and should be, at most."""

    label: str
    value: float
    must: float
    aim: float
    unit: str = "of the peer"

    @property
    def verdict(self) -> str:
        """How it stands."""
        if self.value <= self.aim:
            return "aim met"
        return "met" if self.value <= self.must else "NOT MET"


def targets(results: Mapping[str, Any]) -> list[Target]:
    """Hold the figures against the targets; everything is put so that less is better."""
    figures, calls, memory = results["figures"], results["calls"], results["memory"]

    def ratio(label: str) -> float:
        return float(figures[label]["ours"] / figures[label]["peer"])

    warm = figures["warm batch of 10: wall, ms"]
    handled = figures["batch of 1 handled before: wall, ms"]
    total = {what: sum(calls[what]["ours"].values()) for what in calls}
    growth = memory["ours"]["whole"] / memory["ours"]["half"]
    return [
        Target("cold start to the first answered batch, wall", ratio("cold start: wall, ms"), 0.58, 0.50),
        Target("cold start to the first answered batch, CPU", ratio("cold start: CPU, ms"), 0.58, 0.50),
        Target("peak memory, likewise", ratio("cold start: peak memory, MB"), 0.65, 0.60),
        Target("warm batch of ten, to the floor of 50 ms", warm["ours"] / FLOOR_MS, 1.6, 1.3, "of the floor"),
        Target("warm batch of ten, to the peer", warm["ours"] / warm["peer"], 1 / 7.5, 1 / 9),
        Target("first batch of ten over TLS, fresh process", ratio("first batch of 10 over TLS: wall, ms"), 0.3, 0.2),
        Target("AWS calls of a fresh notice alone", total["alone"], 5, 5, "calls"),
        Target("AWS calls of one in a batch of ten", total["in a batch of 10"], 3.5, 3.2, "calls"),
        Target("AWS calls of one handled before", total["handled"], 2, 1, "calls"),
        Target("time of one handled before", handled["ours"] / handled["peer"], float("inf"), 1.0),
        Target("CPU per notice, in a batch of ten", ratio("CPU per notice in a batch of 10, ms"), 0.55, 0.40),
        Target("memory after 5,000 notices to after 2,500", growth, 1.01, 1.002, "of the half"),
    ]


def table(results: Mapping[str, Any]) -> str:
    """Return the figures and how they stand to the targets, as text."""
    names = results["functions"]
    lines = [
        f"Python {results['python']}, {results['cores']} cores, "
        f"load {results['load'][0]:.1f} to {results['load'][1]:.1f}, "
        f"{results['seconds']:.0f} s",
        "",
        _row("median", names),
    ]
    for label, by_name in results["figures"].items():
        lines.append(_row(label, [f"{by_name[n]:.1f}" if n in by_name else "" for n in names]))
    for part in ("half", "whole"):
        label = f"memory after {results['notices'] // (2 if part == 'half' else 1)} notices, MB"
        found = results["memory"]
        lines.append(_row(label, [f"{found[n][part]:.1f}" if n in found else "" for n in names]))
    for what, by_name in results["calls"].items():
        lines.append(
            _row(f"AWS calls: {what}", [f"{sum(by_name[n].values()):.1f}" if n in by_name else "" for n in names])
        )
    lines += ["", f"{'target':50} {'measured':>9} {'must':>7} {'aim':>7}"]
    for target in targets(results):
        must = "" if target.must == float("inf") else f"{target.must:.2f}"
        lines.append(
            f"{target.label:50} {target.value:9.3f} {must:>7} {target.aim:7.2f} {target.unit:12} {target.verdict}"
        )
    return "\n".join(lines)


def _row(label: str, values: Iterable[str]) -> str:
    return f"{label:44}" + "".join(f"{value:>18}" for value in values)


BARS = (
    ("Cold start to the first answered batch", "cold start: wall, ms", "ms"),
    ("Peak memory of a cold start", "cold start: peak memory, MB", "MB"),
    ("First batch of ten over TLS", "first batch of 10 over TLS: wall, ms", "ms"),
    ("Warm batch of ten, 10 ms a call", "warm batch of 10: wall, ms", "ms"),
    ("Warm batch of one, 10 ms a call", "warm batch of 1: wall, ms", "ms"),
    ("CPU per notice, in a batch of ten", "CPU per notice in a batch of 10, ms", "ms"),
)


def picture(results: Mapping[str, Any]) -> str:
    """Return the main figures as an SVG: two bars each, the peer's being the whole width."""
    left, width, high = 270, 380, 46
    total_height = 58 + high * len(BARS) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {total_height}" role="img" '
        'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">',
        "<title>The function against its peer, medians of one run</title>",
        f'<rect width="760" height="{total_height}" rx="8" fill="#ffffff"/>',
        _text(24, 34, "This function", 14, "#0f5bb5", weight=600),
        _text(130, 34, "and what a good engineer would otherwise write (less is better)", 14, "#4d5a67"),
    ]
    for index, (title, label, unit) in enumerate(BARS):
        top = 54 + index * high
        ours, peer = (results["figures"][label][name] for name in ("ours", "peer"))
        scale = width / max(ours, peer)
        parts.append(_text(24, top + 22, title, 13, "#1b2530"))
        for offset, value, colour, tail in (
            (4, ours, "#0f5bb5", f" = {ours / peer:.2f}"),
            (20, peer, "#aab4bf", ""),
        ):
            parts.append(
                f'<rect x="{left}" y="{top + offset}" width="{max(2, value * scale):.1f}" height="13" rx="2" '
                f'fill="{colour}"/>'
            )
            said = f"{value:.1f}" if value < 100 else f"{value:.0f}"
            parts.append(_text(left + value * scale + 8, top + offset + 11, f"{said} {unit}{tail}", 12, "#1b2530"))
    said = f"make bench, Python {results['python']}, medians; a stub answers each AWS call after 10 ms"
    parts += [_text(24, total_height - 14, said, 11, "#4d5a67"), "</svg>"]
    return "\n".join(parts) + "\n"


def _text(x: float, y: float, said: str, size: int, colour: str, *, weight: int = 400) -> str:
    return f'<text x="{x:.1f}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{colour}">{said}</text>'


def unmet(results: Mapping[str, Any]) -> Sequence[Target]:
    """Return the targets that are not met."""
    return [target for target in targets(results) if target.value > target.must]
