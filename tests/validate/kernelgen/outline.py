"""Move a part of a kernel to a helper that takes what the part reads and returns what it changes.

for kk in range(0, K, B):          -->     ap, acc = part(K, ap, acc, B)
    acc += tl.load(ap)
    ap += B
"""

from __future__ import annotations

import ast
import builtins

from kernelgen.draw import HEAD, Draw

NAME = "part"


def outlined(text: str, draw: Draw) -> str:
    """The file with one loop, branch or run of statements in a helper; unchanged where nothing lends itself."""
    tree = ast.parse(text)
    kernel = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "kernel")
    spots = [
        (body, i)
        for body in _bodies(kernel)
        for i, statement in enumerate(body)
        if isinstance(statement, (ast.For, ast.If)) and not any(isinstance(n, ast.Return) for n in ast.walk(statement))
    ]
    if not spots:
        return text
    body, at = draw.pick(*spots)
    more = draw.number(0, 2)
    part = body[at : at + 1 + more]
    if any(isinstance(n, (ast.Return, ast.While)) for s in part for n in ast.walk(s)):
        part = body[at : at + 1]
    helpers = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)} | {"tl", *dir(builtins)}
    constants = [a.arg for a in kernel.args.args if a.annotation is not None]
    read = [name for name in _names(part, ast.Load) if name not in helpers]
    given = _before(kernel, body, part[0])
    outer = [name for name in read if name in given or name in _arguments(kernel)]
    changed = [name for name in _names(part, ast.Store) if name in given or _used_after(kernel, part, name)]
    outer += [name for name in changed if name in given and name not in outer]
    parameters = [
        f"{name}: tl.constexpr" if name in constants else name for name in sorted(outer, key=constants.__contains__)
    ]
    called = f"{NAME}({', '.join(p.partition(':')[0] for p in parameters)})"
    result = ", ".join(changed)
    body[at : at + len(part)] = ast.parse(f"{result} = {called}" if changed else called).body
    helper = ast.parse(f"@triton.jit\ndef {NAME}({', '.join(parameters)}):\n    pass").body[0]
    assert isinstance(helper, ast.FunctionDef)
    helper.body = part + (ast.parse(f"def f():\n    return {result}").body[0].body if changed else [])  # type: ignore[attr-defined]
    tree.body.insert(tree.body.index(kernel), helper)
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    return HEAD + "\n\n".join(ast.unparse(ast.fix_missing_locations(n)) + "\n" for n in functions)


def _bodies(kernel: ast.FunctionDef) -> list[list]:
    """Lists of statements: the kernel's own, and those of its compound statements."""
    out = [kernel.body]
    for node in ast.walk(kernel):
        for name in ("body", "orelse"):
            found = getattr(node, name, None)
            if node is not kernel and isinstance(found, list) and found:
                out.append(found)
    return out


def _arguments(kernel: ast.FunctionDef) -> list[str]:
    return [a.arg for a in kernel.args.args]


def _names(part: list, context: type) -> list[str]:
    """Names in order of appearance; the target of an augmented assignment is read, too."""
    found: dict[str, None] = {}
    for statement in part:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, context):
                found.setdefault(node.id)
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                found.setdefault(node.target.id)
    return list(found)


def _before(kernel: ast.FunctionDef, body: list, first: ast.stmt) -> set[str]:
    """Names that have a value wherever `first`, a statement of `body`, is reached."""
    around = [n for n in ast.walk(kernel) if isinstance(n, ast.For) and n.lineno <= first.lineno <= (n.end_lineno or 0)]
    plain = [s for s in (*kernel.body, *body) if isinstance(s, (ast.Assign, ast.AugAssign)) and s.lineno < first.lineno]
    targets = [n.target for n in around if n is not first]
    return {
        n.id
        for s in (*plain, *targets)
        for n in ast.walk(s)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


def _used_after(kernel: ast.FunctionDef, part: list, name: str) -> bool:
    """Whether what the part assigns to a name that is new in it is read behind it."""
    last = part[-1].end_lineno
    after = [n for n in ast.walk(kernel) if isinstance(n, ast.Name) and n.id == name and n.lineno > last]
    reads = [n.lineno for n in after if isinstance(n.ctx, ast.Load)]
    writes = [n.lineno for n in after if isinstance(n.ctx, ast.Store)]
    return bool(reads) and min(reads) <= min(writes, default=min(reads))
