"""Who may import whom, no cycles, no Qt outside app, a light start, and a size budget per file."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("app", "engine", "kernels", "rag")
MAY_IMPORT = {
    "app": {"app", "engine", "rag", "assets"},
    "engine": {"engine", "kernels"},
    "kernels": {"kernels"},
    "rag": {"rag"},
}
QT = {"PySide6", "shiboken6", "pytestqt"}
QT_FREE = ("app.core", "app.cli", "app.main", "engine", "kernels", "rag")
TORCH = {"torch", "triton", "sentence_transformers", "transformers"}
MAX_LINES = 300


def modules() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported(path: Path, *, at_load: bool = False) -> set[str]:
    """Dotted names a file imports; `at_load` leaves out imports inside functions and under TYPE_CHECKING."""
    return set(_imports(parsed(path), at_load))


def _imports(node: ast.AST, at_load: bool) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif not (at_load and _deferred(node)):
        for child in ast.iter_child_nodes(node):
            yield from _imports(child, at_load)


def _deferred(node: ast.AST) -> bool:
    function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    return function or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))


def roots(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize("package", PACKAGES)
def test_import_directions(package: str) -> None:
    ours = set(PACKAGES) | {"assets", "tests"}
    for name, path in modules():
        if name.split(".")[0] == package:
            wrong = (roots(imported(path)) & ours) - MAY_IMPORT[package]
            assert not wrong, f"{name} imports {wrong}"


def test_no_qt_outside_the_window() -> None:
    for name, path in modules():
        if name.startswith(QT_FREE):
            assert not roots(imported(path, at_load=name == "app.main")) & QT, name


def test_torch_is_never_imported_at_load_except_in_the_reference_and_the_gpu_side() -> None:
    for name, path in modules():
        if not name.endswith((".reference", ".gpu")):
            assert not roots(imported(path, at_load=True)) & TORCH, name


def test_web_engine_is_never_imported() -> None:
    for name, path in modules():
        assert not any("WebEngine" in wanted for wanted in imported(path)), name


def test_no_import_cycles() -> None:
    known = dict(modules())
    graph = {name: _edges(name, path, known) for name, path in known.items()}
    done: set[str] = set()
    for name in graph:
        _walk(name, graph, done, ())


def _edges(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    edges = set()
    for wanted in imported(path, at_load=True):
        target = wanted if wanted in known else wanted.rpartition(".")[0]
        if target in known and target != name:
            edges.add(target)
    return edges


def _walk(name: str, graph: dict[str, set[str]], done: set[str], path: tuple[str, ...]) -> None:
    assert name not in path, f"import cycle: {' -> '.join((*path[path.index(name) :], name))}"
    if name not in done:
        for target in sorted(graph[name]):
            _walk(target, graph, done, (*path, name))
        done.add(name)


@pytest.mark.parametrize("module", ["app.main", "engine", "kernels", "rag", "engine.client"])
def test_importing_loads_neither_torch_nor_qt(module: str) -> None:
    code = f"import sys, {module}; print([m for m in {sorted(QT | TORCH)!r} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_files_stay_small() -> None:
    """A longer file says why in its docstring, with the words 'Over 300 lines'."""
    for name, path in modules():
        lines = path.read_text().count("\n")
        reason = ast.get_docstring(parsed(path)) or ""
        assert lines <= MAX_LINES or "over 300 lines" in reason.lower(), f"{name} has {lines} lines"


def test_top_level_of_the_repository_is_fixed() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    tops = {line.split("/")[0] for line in listed.stdout.splitlines()}
    allowed = {*PACKAGES, "assets", "tests", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"}
    assert {top for top in tops if not top.startswith(".")} <= allowed | {"CMakeLists.txt"}
