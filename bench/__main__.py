"""`make bench`: the function as built against its peer. A table, and the JSON and picture for the docs."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from bench import builds, figures, report, stub
from scripts.template import ROOT

NOTICES = 5_000


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make the stub's certificate and key."""
    made, key = folder / "stub.pem", folder / "stub.key"
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    name = ["-subj", "/CN=stub", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", *kind, *name, "-keyout", str(key), "-out", str(made)]
    subprocess.run(command, check=True, capture_output=True)
    return made, key


def trust(folder: Path, sdk: Path, made: Path) -> Path:
    """Make a trust store: the SDK's own, and the stub's certificate."""
    both = folder / "trust.pem"
    both.write_text((sdk / "botocore" / "cacert.pem").read_text() + made.read_text())
    return both


def main() -> int:
    """Measure; the status is 1 when a target is not met."""
    parser = argparse.ArgumentParser(description="The function as built against its peer.")
    parser.add_argument("--rounds", type=int, default=15, help="of each cold figure (default: 15)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="for performance.json and performance.svg")
    asked = parser.parse_args()
    python = builds.interpreter()
    ours, peer = builds.ours(python), builds.peer(python)
    lean = replace(peer, name="peer, no parser", environment=peer.environment | {"PEER_PARSER": "off"})
    begun, load = time.perf_counter(), os.getloadavg()[0]
    made, key = certificate(builds.OUT)
    with stub.running(made, key) as control:
        bench = figures.Bench(python, control, trust(builds.OUT, ours.folders[1], made))
        both = [ours, peer]
        measured = figures.cold(bench, [*both, lean], asked.rounds)
        measured |= figures.first_over_tls(bench, both, asked.rounds)
        measured |= figures.warm(bench, both, asked.rounds)
        results = {
            "python": subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.split()[1],
            "cores": os.cpu_count(),
            "functions": [ours.name, peer.name, lean.name],
            "latency_ms": figures.LATENCY * 1000,
            "rounds": asked.rounds,
            "notices": NOTICES,
            "figures": measured,
            "calls": figures.calls(bench, both),
            "memory": figures.memory(bench, both, NOTICES),
        }
    results |= {"load": [load, os.getloadavg()[0]], "seconds": time.perf_counter() - begun}
    print(report.table(results))
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "performance.json").write_text(json.dumps(results, indent=2) + "\n")
    (asked.out / "performance.svg").write_text(report.picture(results))
    return int(bool(report.unmet(results)))


if __name__ == "__main__":
    sys.exit(main())
