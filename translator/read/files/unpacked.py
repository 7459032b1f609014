"""A program that keeps kernels in strings, as the file that it is when they stand where their strings stand.

    triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', '''
    import triton                                                                       import triton
    @triton_heuristics.pointwise(...)                                             ->    @triton_heuristics.pointwise(...)
    @triton.jit                                                                         @triton.jit
    def triton_poi_fused_add_0(in_ptr0, out_ptr0, xnumel, XBLOCK): ...                  def triton_poi_fused_add_0(...): ...
    ''', device_str='cuda')

This is what `torch.compile` writes (`output_code.py`). Every line keeps its number, so that what is said of a kernel is said of the file. A
string was a module of its own: a name of it that another string, or the file, has for something else gets a number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gluonize.numbered import numbered
from gluonize.read.text.parsed import parsed_text

_CALLS = re.compile(r"^\w+ *= *\w+\.triton\(", re.MULTILINE)


def unpacked(text: str, path: str) -> str:
    """The text of a file with the kernels of its strings as code; the text itself where it has none. Raises: SyntaxError of the file."""
    if not _CALLS.search(text):
        return text
    tree = parsed_text(text, path)
    assert isinstance(tree, ast.Module)
    packed = list(_packed(tree))
    lines = text.split("\n")
    mentioned = _bound([node for node in tree.body if all(node is not statement for statement, _, _ in packed)])
    out: list[str] = []
    done = 0
    for statement, name, source in packed:
        try:
            body = parsed_text(source, path).body  # type: ignore[attr-defined]
        except SyntaxError:
            continue  # it is no Python: it stays a string
        own = {n for n in _bound(body) if n != name and not _is_import(n, body)}
        inside = source
        for old in sorted(own & mentioned):
            new = numbered(old, (mentioned | own).__contains__)
            inside = re.sub(rf"(?<![\w.]){re.escape(old)}\b", new, inside)
            own.add(new)
        mentioned |= own | {name}
        target = statement.targets[0].id  # type: ignore[attr-defined]
        call = statement.value.args[1]  # type: ignore[attr-defined]
        out += [*lines[done : statement.lineno - 1], *[""] * (call.lineno - statement.lineno), *inside.split("\n")]
        missing = (
            statement.end_lineno - statement.lineno + 1 - (len(inside.split("\n")) + call.lineno - statement.lineno)
        )
        out += [""] * missing
        if target != name:
            out[-1] = f"{target} = {name}"
        done = statement.end_lineno
    return "\n".join([*out, *lines[done:]])


def _packed(tree: ast.Module) -> Iterator[tuple[ast.Assign, str, str]]:
    """The statements that make a kernel of a string, its name, and the string."""
    for node in tree.body:
        if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)):
            continue
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "triton":
            given = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            if len(given) > 1 and len(given) == len(call.args) and "jit" in given[1]:
                yield node, given[0], given[1]


def _bound(body: list[ast.stmt]) -> set[str]:
    """The names that statements of a module's top level bind."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        else:
            found |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return found


def _is_import(name: str, body: list[ast.stmt]) -> bool:
    imports = [node for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return name in _bound(imports)  # type: ignore[arg-type]


__all__ = ["unpacked"]
