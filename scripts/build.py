"""Build the functions and layers as they are deployed, without sam: ``python -m scripts.build``.

The layers come from the same makefiles as in ``sam build``, but for the interpreter that runs this, as the local
AWS runs the functions on that one too. What did not change is not built again.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from notices.examples import check_catalogue
from notices.kind_files import KindError
from scripts.template import ROOT, load

BUILD = ROOT / "build"


class BuildError(RuntimeError):
    """Something could not be built; the message has the makefile's own words, or names the kind, file and line."""


@dataclass(frozen=True)
class Artefact:
    """A function or a layer of the template, and the property that says where its source is."""

    logical_id: str
    uri: str
    source: Path

    @property
    def is_layer(self) -> bool:
        """Whether this is a layer, which a makefile builds, or a function, which is copied."""
        return self.uri == "ContentUri"


def artefacts() -> list[Artefact]:
    """What the template deploys."""
    uris = {"AWS::Serverless::Function": "CodeUri", "AWS::Serverless::LayerVersion": "ContentUri"}
    return [
        Artefact(logical_id, uri, ROOT / resource["Properties"][uri])
        for logical_id, resource in load()["Resources"].items()
        if (uri := uris.get(resource["Type"]))
    ]


def build(out: Path = BUILD, python: str = sys.executable) -> dict[str, Path]:
    """Build into ``out`` for the interpreter ``python``; the built folders by logical id.

    Raises:
        BuildError: a layer could not be built, or a kind of message is not right.
    """
    try:
        check_catalogue()
    except KindError as error:
        raise BuildError(f"a kind is not right: {error}") from None
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests and the demo may build at the same time
        return _build(out, python)


def _build(out: Path, python: str) -> dict[str, Path]:
    version = subprocess.run([python, "-VV"], check=True, capture_output=True, text=True).stdout
    built = {}
    for artefact in artefacts():
        target = out / artefact.logical_id
        stamp = out / f".{artefact.logical_id}.stamp"
        digest = _digest(artefact.source, version)
        built[artefact.logical_id] = target
        if target.is_dir() and stamp.is_file() and stamp.read_text() == digest:
            continue
        stamp.unlink(missing_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        if artefact.is_layer:
            _make(artefact, target, python)
        else:
            shutil.copytree(artefact.source, target, ignore=_not_source, dirs_exist_ok=True)
        stamp.write_text(digest)
    return built


def _make(artefact: Artefact, target: Path, python: str) -> None:
    """Run the layer's makefile on a copy of its source, as sam does."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / artefact.source.name
        shutil.copytree(artefact.source, source, ignore=_not_source)
        done = subprocess.run(
            ["make", f"build-{artefact.logical_id}", f"ARTIFACTS_DIR={target.resolve()}", f"PYTHON={python}"],
            cwd=source,
            capture_output=True,
            text=True,
            # Without the flags of the make that may be running this.
            env={name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")},
        )
    if done.returncode:
        raise BuildError(f"{artefact.logical_id} could not be built:\n{done.stdout}{done.stderr}")


def _not_source(_folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__" or name.endswith(".egg-info")]


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - set(_not_source(parent, folders)))
        yield from (Path(parent) / name for name in sorted(names))


def _digest(source: Path, version: str) -> str:
    """One value for all that decides what is built: the source, and the interpreter that compiles it."""
    digest = hashlib.sha256(version.encode())
    for path in _files(source):
        digest.update(f"{path.relative_to(source)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def main() -> int:
    """Build, and say where."""
    parser = argparse.ArgumentParser(description="Build the functions and layers as they are deployed.")
    parser.add_argument("--out", type=Path, default=BUILD, help="where to (default: build/)")
    out = parser.parse_args().out
    try:
        for logical_id, folder in build(out).items():
            print(f"{logical_id:26} {folder}")
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
