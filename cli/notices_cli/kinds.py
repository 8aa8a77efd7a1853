"""Writing a kind: make one, check them all, look at them (DESIGN 3.8, docs/kinds.md).

`python -m notices_cli.kinds new|check|preview|gallery`. Nothing here is deployed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from string import Template

from notices.examples import faults
from notices.kind_files import KindError, read, shown_path
from notices.kind_toml import NAME
from notices.kinds import KINDS
from notices_cli.gallery import Shown, gallery, shown

_MODEL = Path(__file__).parent / "new_kind"
GALLERY = Path("build/gallery.html")


def new_kind(folder: Path, name: str) -> list[Path]:
    """Write a kind called `name` into `folder`, one that passes the check, and return its files.

    Raises:
        KindError: the name cannot be a kind's, or there is one of that name.
    """
    kind = folder / name
    if not NAME.fullmatch(name):
        raise KindError(kind, "a kind's name is 1 to 64 of a-z, 0-9 and _, a letter first. Take another.")
    if kind.exists():
        raise KindError(kind, "there is a kind of that name. Change its files, or take another name.")
    words = name.replace("_", " ").strip()
    written = []
    for model in sorted(path for path in _MODEL.rglob("*") if path.is_file()):
        path = kind / model.relative_to(_MODEL)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template(read(model)).substitute(title=words.capitalize(), words=words), encoding="utf-8")
        written.append(path)
    return written


def check_kinds(folder: Path) -> list[str]:
    """Return what is wrong with the kinds in `folder`, in plain words, each with its file and line; empty: nothing."""
    try:
        return [str(fault) for fault in faults(folder)]
    except KindError as fault:
        return [str(fault)]


def as_text(one: Shown) -> str:
    """Return a message as a terminal shows it: who gets it, its subject and its text."""
    return f"{one.title}\nSubject: {one.message.subject}\n\n{one.message.text}"


def command_line() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    parser = argparse.ArgumentParser(prog="notices kind", description="Make, check and look at kinds of messages.")
    parser.add_argument("--folder", type=Path, default=KINDS, help="where the kinds are (default: the ones that ship)")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("new", help="make a kind that already passes").add_argument("name")
    commands.add_parser("check", help="say what is missing or wrong, with file and line")
    preview = commands.add_parser("preview", help="show a kind's messages as text")
    preview.add_argument("name")
    for choice in ("outcome", "audience", "locale"):
        preview.add_argument(f"--{choice}", help=f"only this {choice}")
    commands.add_parser("gallery", help="write a page with every message of every kind").add_argument(
        "--out", type=Path, default=GALLERY, help=f"where to (default: {GALLERY})"
    )
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 when it could and all is right, 1 otherwise."""
    given = command_line().parse_args(arguments)
    try:
        return _run(given)
    except KindError as error:
        print(error, file=sys.stderr)
        return 1


def _run(given: argparse.Namespace) -> int:
    match given.command:
        case "new":
            for path in new_kind(given.folder, given.name):
                print(shown_path(path))
            print("Change them as docs/kinds.md says, and look: notices kind check, notices kind preview", given.name)
        case "check":
            problems = check_kinds(given.folder)
            print("\n".join(problems) or "Every kind is right.")
            return 1 if problems else 0
        case "preview":
            found = shown(given.folder, given.name, given.outcome, given.audience, given.locale)
            print(f"\n{'─' * 72}\n\n".join(map(as_text, found)), end="")
        case _:
            given.out.parent.mkdir(parents=True, exist_ok=True)
            given.out.write_text(gallery(given.folder), encoding="utf-8")
            print(f"{given.out.resolve().as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
