"""Kho reads its settings from `runtime.environment`, and writes no environment that other code reads."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
WRITER = ROOT / "shared" / "platform" / "library_environment.py"
WRITES = {"update", "setdefault", "pop", "popitem", "clear", "__setitem__", "__ior__"}


def environment_writes(program: str) -> list[int]:
    """Return the lines that write this process's environment."""
    nodes = [node for node in ast.walk(ast.parse(program)) if isinstance(node, ast.expr | ast.stmt)]
    return [node.lineno for node in nodes if _is_write(node)]


def _is_write(node: ast.AST) -> bool:
    match node:
        case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()) | ast.AugAssign(target=value):
            return _is_environment(value)
        case ast.Call(func=ast.Attribute(value=value, attr=name)):
            return name in ("putenv", "unsetenv") or (name in WRITES and _is_environment(value))
        case ast.ImportFrom(module="os", names=names):
            return any(each.name in ("environ", "environb", "putenv", "unsetenv") for each in names)
    return False


def _is_environment(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("environ", "environb")


def test_one_module_writes_the_environment_for_libraries_alone() -> None:
    files = [file for folder in ("functions", "shared", "infra") for file in (ROOT / folder).rglob("*.py")]
    writes = {file: lines for file in files if (lines := environment_writes(file.read_text(encoding="utf-8")))}
    assert writes.keys() == {WRITER}


@pytest.mark.parametrize(
    "write",
    [
        "os.environ['KHO_AUTH'] = 'open'",
        "del os.environ['KHO_AUTH']",
        "os.environ |= settings",
        "os.environ.update(settings)",
        "os.environ.setdefault('KHO_AUTH', 'open')",
        "os.environ.pop('KHO_AUTH')",
        "a, os.environ['KHO_AUTH'] = 1, 'open'",
        "os.putenv('KHO_AUTH', 'open')",
        "from os import environ",
    ],
)
def test_each_way_to_write_is_found(write: str) -> None:
    assert environment_writes(write) == [1]


def test_functions_read_settings_from_the_runtime() -> None:
    readers = {
        str(file.relative_to(ROOT))
        for folder in ("functions", "shared")
        for file in (ROOT / folder).rglob("*.py")
        if "os.environ" in file.read_text(encoding="utf-8")
    }
    assert readers == {f"shared/platform/{name}.py" for name in ("config", "library_environment", "runtime")}
