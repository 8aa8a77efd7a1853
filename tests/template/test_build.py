"""What is deployed, built by the makefiles that `sam build` runs and imported as Lambda would. Case DL-06."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.build import Artefact, artefacts, build
from template.resolve import Stack

DECLARED = "python3.13"
LIMIT = 250 * 1024 * 1024

IMPORT = """
import importlib, pathlib, sys
app, layers = sys.argv[1], sys.argv[2:]
sys.path[:0] = [app, *layers]
assert callable(importlib.import_module("app").handler)
outside = {
    name
    for name, module in sys.modules.items()
    if (file := getattr(module, "__file__", None))
    and not file.startswith((*sys.argv[1:], sys.base_prefix, sys.base_exec_prefix, "<"))
}
assert not outside, outside
stale = [
    name
    for name, module in sys.modules.items()
    if str(getattr(module, "__file__", "")).startswith(tuple(layers))
    and not pathlib.Path(str(module.__cached__)).exists()
]
assert not stale, stale
"""


def interpreters() -> list[str]:
    """The one that runs the tests, and the declared one where the machine has it."""
    found = [sys.executable]
    if sys.version_info[:2] != (3, 13) and (declared := shutil.which(DECLARED)):
        # A version manager may have put a command there that finds nothing.
        works = subprocess.run([declared, "-m", "pip", "--version"], capture_output=True).returncode == 0
        found += [declared] if works else []
    return found


@pytest.fixture(scope="module", params=interpreters(), ids=lambda path: Path(path).name)
def interpreter(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def built(interpreter: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    # One folder for all workers of a run, which wait for each other in it and build once.
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return build(folder / f"built-{Path(interpreter).name}", interpreter)


def layers(built: dict[str, Path]) -> list[Path]:
    return [built[artefact.logical_id] for artefact in artefacts() if artefact.is_layer]


@pytest.mark.parametrize(
    "function", [a for a in artefacts() if not a.is_layer], ids=lambda artefact: artefact.logical_id
)
def test_each_handler_imports_from_its_folder_and_the_layers_alone(
    function: Artefact, built: dict[str, Path], interpreter: str, tmp_path: Path
) -> None:
    stack = Stack(NoticeFromAddress="notices@example.com", SesIdentity="example.com")
    variables = {name: _plain(value) for name, value in stack.environment(function.logical_id).items()}
    # As in Lambda: no user site, nothing installed beside the interpreter, an empty home, no bytecode written.
    done = subprocess.run(
        [
            _base(interpreter),
            "-B",
            "-I",
            "-S",
            "-c",
            IMPORT,
            str(built[function.logical_id]),
            *(str(layer / "python") for layer in layers(built)),
        ],
        cwd=tmp_path,
        env={"PATH": os.defpath, "HOME": str(tmp_path), "AWS_REGION": "eu-west-1", **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_the_whole_is_below_lambdas_limit(built: dict[str, Path]) -> None:
    shared = sum(size(layer) for layer in layers(built))
    for artefact in artefacts():
        if not artefact.is_layer:
            assert shared + size(built[artefact.logical_id]) < LIMIT


def test_layers_hold_no_machine_code_and_no_python_folder_within_another(built: dict[str, Path]) -> None:
    for layer in layers(built):
        assert [entry.name for entry in layer.iterdir()] == ["python"]
        assert not (layer / "python" / "python").exists()
        assert [path for path in layer.rglob("*") if path.suffix in (".so", ".pyd", ".dylib")] == []


def test_every_module_of_the_layers_comes_with_bytecode_that_is_not_checked(built: dict[str, Path]) -> None:
    for layer in layers(built):
        sources = list(layer.rglob("*.py"))
        compiled = list(layer.rglob("*.pyc"))
        assert len(sources) == len(compiled) > 0
        for path in compiled:
            # PEP 552: the first flag says that the file is known by a hash, the second that it is to be checked.
            assert int.from_bytes(path.read_bytes()[4:8], "little") == 0b01, path


def test_kinds_are_in_the_layer(built: dict[str, Path]) -> None:
    source = next(artefact.source for artefact in artefacts() if artefact.logical_id == "NoticesLayer")
    kinds = {p.relative_to(source) for p in (source / "notices" / "kinds").rglob("*") if p.is_file()}
    shipped = built["NoticesLayer"] / "python"
    assert kinds
    assert [path for path in kinds if not (shipped / path).is_file()] == []


NOTHING_IS_COMPILED = """
import sys
sys.path[:0] = sys.argv[1:]
import jinja2
def refuse(*_args, **_kwargs):
    raise AssertionError("compiled at start")
jinja2.Environment.compile = jinja2.Environment.parse = refuse
from notices.kinds import load_catalogue
catalogue = load_catalogue()
assert len(catalogue) and not catalogue.broken, catalogue.broken
"""


def test_the_templates_that_ship_were_compiled_by_the_build(built: dict[str, Path], interpreter: str) -> None:
    folders = [str(layer / "python") for layer in layers(built)]
    command = [_base(interpreter), "-B", "-I", "-S", "-c", NOTHING_IS_COMPILED, *folders]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_templates_are_compiled_by_what_runs_them() -> None:
    pinned = {a.logical_id: set(_pins(a.source)) for a in artefacts() if a.is_layer}
    assert pinned["NoticesLayer"] < pinned["DependenciesLayer"]


def _pins(source: Path) -> list[str]:
    lines = [line for path in source.glob("*requirements.txt") for line in path.read_text().splitlines()]
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def test_everything_is_pinned_as_in_the_project(built: dict[str, Path]) -> None:
    source = next(artefact.source for artefact in artefacts() if artefact.logical_id == "DependenciesLayer")
    lines = [line.partition("#")[0].strip() for line in (source / "requirements.txt").read_text().splitlines()]
    pinned = dict(line.split("==") for line in lines if line)
    shipped = {
        path.name.removesuffix(".dist-info").rpartition("-")[::2]
        for path in (built["DependenciesLayer"] / "python").glob("*.dist-info")
    }
    assert {(name.replace("_", "-").lower(), version) for name, version in shipped} == set(pinned.items())
    import tomllib

    project = tomllib.loads((source.parents[1] / "pyproject.toml").read_text())["project"]
    assert set(project["dependencies"]) <= {f"{name}=={version}" for name, version in pinned.items()}


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _plain(value: str) -> str:
    """What only a deployed stack knows, as some text."""
    return value.strip("{}")


def _base(interpreter: str) -> str:
    """The interpreter behind a virtual environment: `-S` alone would still find the environment's packages by it."""
    code = "import sys; print(getattr(sys, '_base_executable', sys.executable))"
    return subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
