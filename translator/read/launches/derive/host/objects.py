"""Classes of host code: what makes their objects, as a function that gives `self` its attributes."""

from __future__ import annotations

import ast
import copy

from gluonize.read.evaluate.host_objects import UserClass, UserFunction
from gluonize.read.evaluate.program import Program
from gluonize.read.names.scope import Frame, Scope
from gluonize.read.unresolved import NoValue

_BASES = 8


def class_named(program: Program, node: ast.expr | None, scope: Scope | Frame) -> UserClass | None:
    """The class of the program that an annotation or a base names, `Args | None` and `"Args"` too; None of anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
        node = ast.copy_location(ast.Name(node.value, ast.Load()), node)
    if isinstance(node, ast.BinOp):
        return class_named(program, node.left, scope) or class_named(program, node.right, scope)
    if isinstance(node, ast.Subscript) and ast.unparse(node.value).rpartition(".")[2] == "Optional":
        node = node.slice
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    try:
        found = program.evaluate(node, scope)
    except NoValue:
        return None
    return found if isinstance(found, UserClass) else None


def member(
    program: Program, kind: UserClass, name: str, above: Scope | Frame | None = None
) -> UserFunction | ast.AnnAssign | ast.Assign | None:
    """A method of a class, or the statement that makes an attribute of it; that of a base where it has none. above: of the classes
    behind the one with this body, as `super()` asks."""
    classes = _with_bases(program, kind)
    names = [one.scope.qualname for one in classes]
    first = names.index(above.qualname) + 1 if above is not None and above.qualname in names else 0
    for one in classes[first:]:
        for node in one.node.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return UserFunction(node, one.scope)
            targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return node  # type: ignore[return-value]
    return None


def maker(program: Program, kind: UserClass) -> UserFunction | None:
    """`__init__` of a class; for a dataclass what its fields say. None where it has neither."""
    found = member(program, kind, "__init__")
    if isinstance(found, UserFunction):
        return found
    marks = [ast.unparse(mark).partition("(")[0].rpartition(".")[2] for mark in kind.node.decorator_list]
    return UserFunction(_of_fields(program, kind), kind.scope) if "dataclass" in marks else None


def _with_bases(program: Program, kind: UserClass) -> list[UserClass]:
    found = [kind]
    while len(found) < _BASES:
        last = found[-1]
        bases = [class_named(program, base, last.scope.parent or last.scope) for base in last.node.bases]
        if not (known := [base for base in bases if base is not None and base not in found]):
            break
        found.append(known[0])
    return found


def _of_fields(program: Program, kind: UserClass) -> ast.FunctionDef:
    """`def __init__(self, x: Tensor, block: int = 64): self.x = x; self.block = block` of a dataclass."""
    fields = {
        node.target.id: node
        for one in reversed(_with_bases(program, kind))
        for node in one.node.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    defaults = [default for node in fields.values() if (default := _default(node.value)) is not None]
    made = ast.parse("def __init__(self): pass").body[0]
    assert isinstance(made, ast.FunctionDef)
    made.args.args += [ast.arg(name, node.annotation) for name, node in fields.items()]
    made.args.defaults = defaults
    made.body = [ast.parse(f"self.{name} = {name}").body[0] for name in fields] or made.body
    for part in (made, *made.args.args, *(inner for one in made.body for inner in ast.walk(one))):
        ast.copy_location(part, kind.node)
    return made


def _default(value: ast.expr | None) -> ast.expr | None:
    """The default of a dataclass's field; None where there is none."""
    if not isinstance(value, ast.Call) or ast.unparse(value.func).rpartition(".")[2] != "field":
        return value
    given = {keyword.arg: keyword.value for keyword in value.keywords}
    if "default_factory" in given:
        return ast.copy_location(ast.Call(given["default_factory"], [], []), value)
    return given.get("default")


def as_call(function: UserFunction, name: str) -> ast.FunctionDef:
    """What makes an object, as the function that a call of the class's name calls, with an end behind all that it does."""
    whole = copy.copy(function.node)
    assert isinstance(whole, ast.FunctionDef)
    whole.name, whole.body = name, [*whole.body, ast.copy_location(ast.Pass(), whole.body[-1])]
    return whole
