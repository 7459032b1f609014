"""The jit functions of a file, with their arguments, as a listing shows them; nothing is traced or executed."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.evaluate.jit_calls import jit_calls, unread_calls
from gluonize.read.evaluate.program import Program
from gluonize.read.files.modules import full_search_path
from gluonize.read.files.source_names import no_kernels
from gluonize.read.kernels.decorators import MADE, Decorator, kernel_decorators
from gluonize.read.kernels.load import resolve_source
from gluonize.read.names.scope import Scope


@dataclass(frozen=True)
class KernelInfo:
    """A jit function. `name` is its qualified name; `line` that of its `def`; `constexprs` are the arguments annotated
    `tl.constexpr`; `defaults` the source text of default values. `is_kernel` is false for what only other jit functions
    of the file call or what returns a value: a helper, which cannot be launched. `aliases` are the names that assignments give it
    (`kernel = triton.jit(f)`, `kernel = f`)."""

    name: str
    line: int
    decorators: tuple[Decorator, ...]
    args: tuple[str, ...]
    constexprs: tuple[str, ...]
    defaults: dict[str, str]
    annotations: dict[str, str]
    is_kernel: bool
    node: ast.FunctionDef
    aliases: tuple[str, ...] = ()


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
        decorators = kernel_decorators(node, home)
        if any(decorator.kind in ("jit", MADE) for decorator in decorators):
            found.append((node, home, decorators))
    if not found:
        raise TranslationError(_none(scope))
    called = set().union(*(_called_names(node) - {*names_of(node, home)} for node, home, _ in found))
    return [_info(node, home, decorators, called) for node, home, decorators in found]


def nothing_to_launch(infos: Iterable[KernelInfo], source: str) -> TranslationError:
    """The refusal of a file whose jit functions are all helpers: why each of them is one."""

    def reason(info: KernelInfo) -> str:
        if _returns_value(info.node):
            return "returns a value"
        return "is a method" if _is_method(info.name, info.node) else "is used by another"

    reasons = [f"{info.name} (line {info.line}) {reason(info)}" for info in infos]
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


def _none(scope: Scope) -> Diagnostic:
    """The refusal of a file without kernels: where it makes some in a way that is not read, which."""
    plain = no_kernels(scope.path)
    for call in unread_calls(scope):
        place = scope.path, call.lineno, call.col_offset + 1
        why = f"`{ast.unparse(call)}` makes a kernel of something that is no function of this file"
        help = "translate the file that defines the function, with @triton.jit above its def"
        return Diagnostic(plain.code, plain.message, *place, why, help)
    return plain


def names_of(node: ast.FunctionDef, scope: Scope) -> tuple[str, ...]:
    """The names that a jit function has in its file."""
    given = [name for call in jit_calls(scope) if call.function is node for name in call.names]
    known = {node.name, *given}
    for name, bindings in scope.bindings.by_name.items():
        values = [b.value for b in bindings if b.kind == "assign" and not b.path]
        given += [name for value in values if isinstance(value, ast.Name) and value.id in known]
    return tuple(dict.fromkeys([node.name, *given]))


@functools.lru_cache(maxsize=1024)
def _called_names(node: ast.FunctionDef) -> frozenset[str]:
    names = (inner for inner in ast.walk(node) if isinstance(inner, ast.Name))
    return frozenset(name.id for name in names if isinstance(name.ctx, ast.Load))


@functools.lru_cache(maxsize=1024)
def _returns_value(node: ast.FunctionDef) -> bool:
    return any(
        isinstance(inner, ast.Return) and inner.value is not None and not _is_none(inner.value)
        for inner in ast.walk(node)
    )


def _is_method(name: str, node: ast.FunctionDef) -> bool:
    """Whether a function of a class, `C.f`, is called on an object of it, as those of aggregates are."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    return "." in name and bool(arguments) and arguments[0].arg == "self"


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
    aliases = tuple(name for name in names_of(node, scope) if name != node.name)
    annotations = {arg.arg: ast.unparse(arg.annotation) for arg in args if arg.annotation is not None}
    name = f"{scope.qualname}.{node.name}" if scope.qualname else node.name
    is_helper = bool(called & {node.name, *aliases}) or _returns_value(node) or _is_method(name, node)
    return KernelInfo(
        name=name,
        line=node.lineno,
        decorators=decorators,
        args=tuple(arg.arg for arg in args),
        constexprs=tuple(name for name, text in annotations.items() if "constexpr" in text),
        defaults=defaults,
        annotations=annotations,
        is_kernel=not is_helper,
        node=node,
        aliases=aliases,
    )
