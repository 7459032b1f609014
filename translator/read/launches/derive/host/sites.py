"""Launches of a kernel and calls of functions in host code: in its own file, and in the package around it. Nothing is imported."""

from __future__ import annotations

import ast
import functools
import itertools
import os
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field

from gluonize.diagnostics import TranslationError
from gluonize.read.evaluate.program import Program
from gluonize.read.files import package
from gluonize.read.files.modules import module_of_path, parse_file
from gluonize.read.kernels.listing import names_of
from gluonize.read.launches.derive.host.launch_forms import LaunchForms
from gluonize.read.names.scope import Scope
from gluonize.read.unresolved import NoValue

# What stands behind the name of a kernel where a file launches it, or hands it on.
_BEHIND = ("[", ")", ",", ".run(", "}", "\n", '"')

_IMPORTS = 20  # files through which a name is followed


@dataclass(frozen=True)
class Site:
    """One launch, or call of a host function: the call, the host functions around it (outermost first) with the scopes that they are defined in, and the
    expression of every argument; `keywords` are launch options, `spread` the dicts given with `**`; `positional` what is passed without
    a name, what was bound before the call included."""

    call: ast.AST
    path: str
    functions: tuple[ast.FunctionDef, ...]
    scopes: tuple[Scope, ...]
    outer: Scope
    body: list[ast.stmt]
    names: tuple[str, ...]
    arguments: dict[str, ast.expr] = field(default_factory=dict)
    keywords: dict[str, ast.expr] = field(default_factory=dict)
    spread: tuple[ast.expr, ...] = ()
    positional: tuple[ast.expr, ...] = ()

    @property
    def line(self) -> int:
        return self.call.lineno

    @property
    def inner(self) -> Scope:
        """Where names that the host function does not bind are looked up."""
        return self.scopes[-1] if self.scopes else self.outer

    def place(self, home: str) -> str:
        """`line 12`, with the file where it is not the kernel's."""
        return f"line {self.line}" if self.path == home else f"{os.path.basename(self.path)}:{self.line}"


def find_sites(program: Program, home: Scope, kernel: ast.FunctionDef) -> list[Site]:
    """The launches of a kernel in its file; where there are none, in the other files of its package."""
    called = names_of(kernel, home)
    own = list(_sites_in(home, kernel, LaunchForms(called, home.body).launch))
    others = _others(program, home, called, _BEHIND) if not own else ()
    return own or [site for module in others for site in _launches(module, home, kernel, called)]


def find_every_site(program: Program, home: Scope, kernel: ast.FunctionDef) -> Iterator[Site]:
    """The launches of a kernel in its file, then those in the other files of its package."""
    called = names_of(kernel, home)
    for module in (home, *_others(program, home, called, _BEHIND)):
        yield from _launches(module, home, kernel, called)


def _launches(module: Scope, home: Scope, kernel: ast.FunctionDef, called: tuple[str, ...]) -> Iterator[Site]:
    """The launches of a kernel in one module. called: the names that the kernel has in its own."""
    names = tuple(name for name in called if module is home or not _means_another(module, name, home))
    if names:
        yield from _sites_in(module, kernel, LaunchForms(names, module.body).launch)


def _means_another(module: Scope, name: str, home: Scope) -> bool:
    """Whether a name of a module is a function that another file than the kernel's defines."""
    scope = module
    for _ in range(_IMPORTS):
        bindings = scope.bindings.by_name.get(name)
        if not bindings or bindings[-1].kind != "from":
            return bool(bindings) and bindings[-1].kind in ("def", "class") and not _same_file(scope, home)
        try:
            found = scope.program.import_module(scope.program.absolute_name(bindings[-1].node, scope))
        except NoValue:
            return False
        if not isinstance(found, Scope) or found is scope:
            return False
        name, scope = bindings[-1].alias.name, found  # type: ignore[union-attr]
    return False


def _same_file(one: Scope, other: Scope) -> bool:
    return os.path.realpath(one.path) == os.path.realpath(other.path)


def find_calls(program: Program, home: Scope, function: ast.FunctionDef, skipped: int = 0) -> Iterator[Site]:
    """The calls of a host function by its name, in its file first, then in the other files of its package. skipped: as for `_sites_in`."""
    for module in itertools.chain([home], _others(program, home, (function.name,), ("(",))):
        yield from _sites_in(module, function, functools.partial(_called, name=function.name, module=module), skipped)


def find_own_calls(site: Site) -> Iterator[Site]:
    """The calls `self.f(...)` of the method around a launch, in its class."""
    owner, function = class_of(site), site.functions[0]
    inside = {id(node) for node in ast.walk(owner)} if owner is not None else set()

    def own(node: ast.Call, functions: tuple) -> ast.Call | None:
        return node if id(node) in inside and ast.unparse(node.func) == f"self.{function.name}" else None

    yield from (
        found for found in _sites_in(site.outer, function, own, skipped=1) if found.functions[0] is not function
    )


def find_applications(program: Program, site: Site) -> Iterator[Site]:
    """`C.apply(...)` of the autograd function whose `forward` is around a launch, with the arguments by `forward`'s names."""
    owner = class_of(site)
    if owner is None:
        return
    names = _names_of_apply(site.outer, owner.name)
    applies = functools.partial(_applied, owner=owner.name, names=names)
    skipped = 0 if method_beside(site, "setup_context") is not None else 1  # `ctx`
    yield from _sites_in(site.outer, site.functions[0], applies, skipped=skipped)
    for module in _others(program, site.outer, (f"{owner.name}.apply", *names), ("(",)):
        yield from _sites_in(module, site.functions[0], applies, skipped=skipped)


def _names_of_apply(module: Scope, owner: str) -> tuple[str, ...]:
    """The names that a module has for `C.apply`: `layer_norm = LayerNorm.apply`."""
    return tuple(
        target.id
        for node in module.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and node.value.attr == "apply"
        if _last_name(node.value.value) == owner
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def _others(program: Program, home: Scope, names: tuple[str, ...], behind: tuple[str, ...]) -> Iterator[Scope]:
    """The other files of the package that have one of the names with a text of `behind` after it."""
    for path in package.files_mentioning(home.path, tuple(name + text for name in names for text in behind)):
        try:
            parse_file(path)
        except TranslationError:
            continue  # nothing can be read in it; the kernel's own file is what matters
        yield program.module_of(module_of_path(path)[0])


def _sites_in(
    module: Scope, callee: ast.FunctionDef, wanted: Callable[[ast.Call, tuple], ast.Call | None], skipped: int = 0
) -> Iterator[Site]:
    """The calls that `wanted` says to be some, given the functions around them, with all that they pass. skipped: how many parameters
    of the callee they do not pass."""
    names = [arg.arg for arg in (*callee.args.posonlyargs, *callee.args.args)][skipped:]
    every = (*names, *(arg.arg for arg in callee.args.kwonlyargs))

    def visit(body: list[ast.stmt], scope: Scope, functions: tuple, scopes: tuple) -> Iterator[Site]:
        for statement in body:
            for node in without_definitions(statement):
                if isinstance(node, ast.FunctionDef):
                    inside = scope.inside(node)
                    yield from visit(node.body, inside, (*functions, node), (*scopes, scope))
                elif isinstance(node, ast.ClassDef):
                    yield from visit(node.body, scope.inside(node), functions, scopes)
                elif isinstance(node, ast.Call) and (whole := wanted(node, functions)) is not None:
                    yield _site(node, whole, module, functions, scopes, body, names, every)

    yield from sorted(visit(module.body, module, (), ()), key=lambda site: site.line)


def _called(node: ast.Call, functions: tuple, name: str, module: Scope) -> ast.Call | None:
    """`f(...)` or `module.f(...)`; a method of that name is something else."""
    if isinstance(node.func, ast.Attribute):
        root = node.func.value
        while isinstance(root, ast.Attribute):
            root = root.value
        bindings = module.bindings.by_name.get(root.id, ()) if isinstance(root, ast.Name) else ()
        if not any(isinstance(binding.node, (ast.Import, ast.ImportFrom)) for binding in bindings):
            return None
    return node if _last_name(node.func) == name else None


def _applied(node: ast.Call, functions: tuple, owner: str, names: tuple[str, ...]) -> ast.Call | None:
    """`C.apply(...)` or `module.C.apply(...)`, by these words or by a name that stands for them."""
    func = node.func
    if _last_name(func) in names:
        return node
    is_one = isinstance(func, ast.Attribute) and func.attr == "apply" and _last_name(func.value) == owner
    return node if is_one else None


def _last_name(node: ast.expr) -> str:
    """`f` of `f` and of `module.f`; "" of anything else."""
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _site(
    node: ast.Call, whole: ast.Call, module: Scope, functions, scopes, body, names: list[str], every: tuple[str, ...]
) -> Site:
    arguments, options = passed(whole, names, every)
    spread = tuple(k.value for k in whole.keywords if k.arg is None)
    given = tuple(whole.args)
    return Site(node, module.path, functions, scopes, module, body, every, arguments, options, spread, given)


def method_beside(site: Site, name: str) -> ast.FunctionDef | None:
    """The method of that name in the class that has the outermost function around a launch."""
    owner = class_of(site)
    return next((m for m in owner.body if isinstance(m, ast.FunctionDef) and m.name == name), None) if owner else None


def class_of(site: Site) -> ast.ClassDef | None:
    """The class whose method the outermost function around a launch is."""
    for node in ast.walk(ast.Module(site.outer.body, [])):
        if isinstance(node, ast.ClassDef) and site.functions[0] in node.body:
            return node
    return None


def without_definitions(statement: ast.stmt) -> Iterator[ast.AST]:
    """A statement and what is in it, stopping at definitions (which are yielded themselves)."""
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop(0)
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            stack.extend(ast.iter_child_nodes(node))


def passed(
    call: ast.Call, positional: Iterable[str], every: Container[str]
) -> tuple[dict[str, ast.expr], dict[str, ast.expr]]:
    """(arguments, options) of a call by name; positional: the parameters in order, every: with those that only names give.

    What is spread (`*rest`, `**options`) and what stands behind it is left out.
    """
    arguments: dict[str, ast.expr] = {}
    for name, value in zip(positional, call.args):
        if isinstance(value, ast.Starred):
            break
        arguments[name] = value
    keywords = {k.arg: k.value for k in call.keywords if k.arg is not None}
    arguments |= {name: value for name, value in keywords.items() if name in every}
    return arguments, {name: value for name, value in keywords.items() if name not in every}
