"""The jit functions of a file, with their arguments, as a listing shows them; nothing is traced or executed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from translator.diagnostics import Diagnostic, TranslationError
from translator.source.load import Decorator, _decorator, resolve_source
from translator.source.module_file import full_search_path
from translator.source.program import Program
from translator.source.scope import Scope


@dataclass(frozen=True)
class KernelInfo:
    """A jit function. `name` is its qualified name; `line` that of its `def`; `constexprs` are the arguments annotated
    `tl.constexpr`; `defaults` the source text of default values. `is_kernel` is false for what only other jit functions
    of the file call or what returns a value: a helper, which cannot be launched."""

    name: str
    line: int
    decorators: tuple[Decorator, ...]
    args: tuple[str, ...]
    constexprs: tuple[str, ...]
    defaults: dict[str, str]
    annotations: dict[str, str]
    is_kernel: bool
    node: ast.FunctionDef


def list_kernels(source: str, search_path: Iterable[str] | None = None) -> list[KernelInfo]:
    """The jit functions of a file or module, in source order, those in functions and classes too.

    Raises: TranslationError `source-missing`, `source-unreadable`, `source-not-python`, `source-syntax`, `source-no-kernels`.
    """
    folders = full_search_path(tuple(search_path or ()))
    file, folders = resolve_source(source, folders)
    program = Program(folders)
    scope = program.module_of(file)
    found = []
    for node, home in _definitions(scope):
        decorators = tuple(_decorator(program, d, home) for d in node.decorator_list)
        if any(decorator.kind == "jit" for decorator in decorators):
            found.append((node, home, decorators))
    if not found:
        help = "kernels are functions with @triton.jit"
        raise TranslationError(
            Diagnostic("source-no-kernels", "there are no Triton kernels in it", file.path, help=help)
        )
    called = {call for node, _, _ in found for call in _called_names(node) if call != node.name}
    return [_info(node, home, decorators, called) for node, home, decorators in found]


def nothing_to_launch(infos: Iterable[KernelInfo], source: str) -> TranslationError:
    """The refusal of a file whose jit functions are all helpers: why each of them is one."""
    reasons = [
        f"{info.name} (line {info.line}) " + ("returns a value" if _returns_value(info.node) else "is used by another")
        for info in infos
    ]
    help = "a kernel returns nothing, and no other jit function of the file uses it; name one with -k"
    message = "there is no kernel in it that can be launched"
    return TranslationError(Diagnostic("source-no-kernels", message, source, why="; ".join(reasons), help=help))


def _definitions(scope: Scope) -> Iterator[tuple[ast.FunctionDef, Scope]]:
    """Every function definition and the scope it is in, in source order."""
    nodes = {
        id(binding.node): binding.node
        for bindings in scope.bindings.by_name.values()
        for binding in bindings
        if binding.kind in ("def", "class")
    }
    for node in sorted(nodes.values(), key=lambda n: n.lineno):  # type: ignore[attr-defined]
        if isinstance(node, ast.FunctionDef):
            yield node, scope
        yield from _definitions(scope.inside(node))


def _called_names(node: ast.FunctionDef) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)}


def _returns_value(node: ast.FunctionDef) -> bool:
    return any(
        isinstance(inner, ast.Return) and inner.value is not None and not _is_none(inner.value)
        for inner in ast.walk(node)
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _info(node: ast.FunctionDef, scope: Scope, decorators: tuple[Decorator, ...], called: set[str]) -> KernelInfo:
    spec = node.args
    positional = [*spec.posonlyargs, *spec.args]
    args = [*positional, *spec.kwonlyargs]
    defaults = {
        arg.arg: ast.unparse(v) for arg, v in zip(positional[len(positional) - len(spec.defaults) :], spec.defaults)
    }
    defaults |= {
        arg.arg: ast.unparse(value) for arg, value in zip(spec.kwonlyargs, spec.kw_defaults) if value is not None
    }
    annotations = {arg.arg: ast.unparse(arg.annotation) for arg in args if arg.annotation is not None}
    return KernelInfo(
        name=f"{scope.qualname}.{node.name}" if scope.qualname else node.name,
        line=node.lineno,
        decorators=decorators,
        args=tuple(arg.arg for arg in args),
        constexprs=tuple(name for name, text in annotations.items() if "constexpr" in text),
        defaults=defaults,
        annotations=annotations,
        is_kernel=node.name not in called and not _returns_value(node),
        node=node,
    )
