"""The package's own modules as trees, which several tests look through: each is parsed once in a process."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
read = functools.cache(Path.read_text)


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module, as `ast.walk` gives them; they belong to all tests."""
    return tuple(ast.walk(ast.parse(read(path))))


@functools.cache
def modules(*folders: str) -> tuple[Path, ...]:
    """The modules in folders of the repository, in order."""
    return tuple(path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
