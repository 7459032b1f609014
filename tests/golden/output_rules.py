"""The rules of docs/explanation/output.md that a text can be asked for, each with what in a text is against it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

MOST_COLUMNS, MOST_CONDITIONS, MOST_CHECK_LINES = 120, 8, 25


def lines_too_long(text: str, written: str = "") -> Iterator[str]:
    """written: by authors, of the source and of Triton's own helpers; their lines stay as they are."""
    theirs = {line.strip().replace("tl.", "gl.") for line in written.splitlines()}
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > MOST_COLUMNS and line.strip().replace("tl.", "gl.") not in theirs:
            yield f"line {number} has {len(line)} columns"


def contracts(text: str) -> dict[str, list[str]]:
    """What the header of a text assumes of the launches of each kernel."""
    found: dict[str, list[str]] = {}
    own: list[str] = []
    for line in text.splitlines():
        if match := re.match(r"# (\w+): ", line):
            own = found.setdefault(match.group(1), [])
        elif line.startswith("#   assumes "):
            own.append(line.removeprefix("#   assumes "))
        elif line.startswith("#     ") and own:
            own[-1] += " " + line.removeprefix("#     ")
        elif found and not line.startswith("#"):
            break
    return found


def long_contracts(text: str) -> Iterator[str]:
    for kernel, conditions in contracts(text).items():
        if len(conditions) > MOST_CONDITIONS:
            yield f"{kernel} assumes {len(conditions)} things"


def implied_conditions(text: str) -> Iterator[str]:
    """Two bounds of one number, or of the same expression but for what is added to it."""
    for kernel, conditions in contracts(text).items():
        bounded: set[str] = set()
        for condition in conditions:
            left, bounds, _ = condition.rpartition(" <= ")
            if not bounds:
                continue
            subject = re.sub(r" [+-] \d+$", "", left.removeprefix("0 <= "))
            if subject in bounded:
                yield f"{kernel}: `{subject}` is bounded twice"
            bounded.add(subject)


def long_checks(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("_check"):
            lines = node.end_lineno - node.lineno + 1
            if lines > MOST_CHECK_LINES:
                yield f"{node.name} has {lines} lines"


def _names(node: ast.AST) -> set[str]:
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    texts = {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return used | {word for text in texts for word in re.findall(r"\w+", text) if len(text) < 200}


def unused_names(text: str) -> Iterator[str]:
    """Imports, and private functions and helpers of the top level, that nothing reads."""
    tree = ast.parse(text)
    names = {node: _names(node) for node in tree.body}
    for node in tree.body:
        bound: list[str] = []
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            bound = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.FunctionDef) and (node.name.startswith("_") or is_triton(node)):
            bound = [node.name]
        for name in bound:
            if not any(name in read for other, read in names.items() if other is not node):
                yield f"nothing reads {name}"


def is_triton(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(d).startswith("triton.jit") for d in function.decorator_list)


def unused_layouts(text: str) -> Iterator[str]:
    for function, name, _ in layouts(text):
        if name not in {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}:
            yield f"{function.name}: nothing has the layout {name}"


def layouts(text: str) -> Iterator[tuple[ast.FunctionDef, str, str]]:
    """The layouts of each function that have names, with their texts."""
    for function in ast.walk(ast.parse(text)):
        for s in function.body if isinstance(function, ast.FunctionDef) else ():
            target = s.target if isinstance(s, ast.AnnAssign) else s.targets[0] if isinstance(s, ast.Assign) else None
            value = ast.unparse(s.value) if isinstance(target, ast.Name) and s.value is not None else ""
            if re.match(r"gl\.(amd\.)?\w+Layout\b", value):
                yield function, target.id, value


def equal_layouts(text: str, written: str = "") -> Iterator[str]:
    """written: by authors, whose names of layouts that were different ones for their GPU stay."""
    seen: dict[tuple, str] = {}
    theirs = {*re.findall(r"\b(\w+): gl\.constexpr = ", written.replace("ttgl.", "gl."))}
    for function, name, value in layouts(text):
        if (other := seen.setdefault((function, value), name)) != name and not {name, other} <= theirs:
            yield f"{function.name}: {other} and {name} are one layout"


def assertions_of_types(text: str) -> Iterator[str]:
    """A kernel says in one line which types it is not for."""
    for function in ast.parse(text).body:
        for s in ast.walk(function):
            if isinstance(s, ast.Call) and ast.unparse(s.func) == "gl.static_assert" and "gl.int1" in ast.unparse(s):
                lines = s.end_lineno - s.lineno + 1
                if lines > 3:
                    yield f"{function.name} says in {lines} lines that it is not for bools"


def line_numbers(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"#.*\b[Ll]ine \d+|\.py:\d+", line):
            yield f"line {number} names a line of another file"


RULES: dict[str, Callable[..., Iterator[str]]] = {
    "lines": lines_too_long,
    "conditions": long_contracts,
    "implied": implied_conditions,
    "check": long_checks,
    "names": unused_names,
    "layouts": unused_layouts,
    "duplicates": equal_layouts,
    "bools": assertions_of_types,
    "numbers": line_numbers,
}
