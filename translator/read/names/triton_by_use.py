"""Triton under another name: forks, and imports that cannot be followed.

    from pkg._triton import tl, triton      # pkg is not here: `@triton.jit` and `tl.load` below say what they are
    tl = LazyImport("triton.language")      # what makes it is not known
    import acme_triton as triton            # a fork: its modules are those of Triton

A translation is made with the Triton that runs here, so a fork's module is read as Triton's module of the same name.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
from types import ModuleType
from typing import Any

from gluonize.read.files.modules import find_module
from gluonize.read.names.scope import Frame, Scope
from gluonize.triton_api.gluon_language import gluon
from gluonize.triton_api.host_tensors import TensorDescriptor
from gluonize.triton_api.language import core, libdevice, tl
from gluonize.triton_api.package import triton

# The names under which code bases hand on parts of Triton.
_HANDED_ON: dict[str, Any] = {
    "triton": triton,
    "tl": tl,
    "language": tl,
    "gluon": gluon,
    "gl": gluon.language,
    "libdevice": libdevice,
    "tldevice": libdevice,
    "TensorDescriptor": TensorDescriptor,
    "aggregate": getattr(triton, "aggregate", getattr(core, "_aggregate", None)),
    **{name: getattr(triton, name) for name in ("jit", "autotune", "heuristics", "Config", "cdiv", "next_power_of_2")},
}
# What kernels ask of Triton's language: two of these, and a name is the language.
_OF_LANGUAGE = frozenset({"constexpr", "program_id", "load", "store", "arange"})
# Files that every distribution of Triton has.
_PARTS = ("language.core", "runtime.jit", "compiler.code_generator")


@functools.lru_cache(maxsize=256)
def is_fork(package: str, search_path: tuple[str, ...]) -> bool:
    """Whether an installed package is a distribution of Triton under another name."""
    return all(find_module(f"{package}.{part}", search_path) is not None for part in _PARTS)


def module_of_fork(name: str) -> ModuleType:
    """Triton's module that stands for a fork's of this dotted name. Raises: ImportError."""
    return importlib.import_module("triton" + name[len(name.partition(".")[0]) :])


def stands_for(node: ast.Import | ast.ImportFrom, alias: ast.alias, module: str, scope: Scope | Frame) -> Any:
    """What of Triton an import that cannot be followed binds its name to, or None where nothing says that it is Triton.

    module: the dotted name that a from-import imports from. A package that is called something with `triton` is taken for a fork where Triton has
    what is imported from it; a name that others hand on is taken for Triton's where it is used like Triton, or has one of the usual names in a file
    that has kernels.
    """
    used = _uses(scope) if isinstance(scope, Scope) else {}
    bound = alias.asname or alias.name.partition(".")[0]
    if isinstance(node, ast.Import):
        if alias.asname or "." in alias.name or {"jit", "language"} & used.get(bound, frozenset()):
            found = _of_fork(alias.name, "")
            if found is not None:
                return found if alias.asname else triton
        return _like_triton(bound, used) if alias.asname else None
    if not node.level and (found := _of_fork(module, alias.name)) is not None:
        return found
    # A translation has `@gluon.jit` where its source had `@triton.jit`.
    if alias.name in _HANDED_ON and any(name.startswith("@") for name in used):
        return _HANDED_ON[alias.name]
    return _like_triton(bound, used)


def used_as(name: str, scope: Scope) -> Any:
    """What of Triton a module uses a name as that it is given in a way that is not followed: `tl = LazyImport("triton.language")`. None for
    what it uses otherwise."""
    return _like_triton(name, _uses(scope)) if scope.kind == "module" else None


def forked(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    """The fork that an import names, "" for none: a package that is called something with `triton` where Triton has what is imported."""
    module, name = (node.module or "", alias.name) if isinstance(node, ast.ImportFrom) else (alias.name, "")
    relative = isinstance(node, ast.ImportFrom) and node.level
    return module.partition(".")[0] if not relative and _of_fork(module, name) is not None else ""


def _of_fork(module: str, name: str) -> Any:
    """`acme_triton.language`, or a name in it, as Triton has it; None for what Triton has not."""
    package = module.partition(".")[0]
    if package == "triton" or "triton" not in re.split(r"[_\W]+", package):
        return None
    try:
        found = module_of_fork(module)
        return getattr(found, name, None) or importlib.import_module(f"{found.__name__}.{name}") if name else found
    except ImportError:
        return None


def _like_triton(name: str, used: dict[str, frozenset[str]]) -> Any:
    """Triton or its language, by what a file asks of a name; None for a name that is used otherwise."""
    asked = used.get(name, frozenset())
    if f"@{name}.jit" in used:
        return triton
    return tl if len(asked & _OF_LANGUAGE) > 1 else None


@functools.lru_cache(maxsize=64)
def _uses(scope: Scope) -> dict[str, frozenset[str]]:
    """The attributes that a body asks of each name; `@name.jit` for names whose `jit` decorates a function."""
    found: dict[str, set[str]] = {}
    for statement in scope.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found.setdefault(node.value.id, set()).add(node.attr)
            for decorator in getattr(node, "decorator_list", ()):
                maker = decorator.func if isinstance(decorator, ast.Call) else decorator
                if isinstance(maker, ast.Attribute) and isinstance(maker.value, ast.Name) and maker.attr == "jit":
                    found.setdefault(f"@{maker.value.id}.jit", set())
    return {name: frozenset(asked) for name, asked in found.items()}


__all__ = ["forked", "is_fork", "module_of_fork", "stands_for", "used_as"]
