"""One-step mutants of a Gluon file: what a translator or an editing hand gets wrong.

Each mutant changes one place: a wait, commit, barrier, copy or store deleted, a wait count or a ring index raised by one, a mask or
fill value dropped, a loop shortened, a pointer not advanced, a mask comparison off by one.

    python mutants.py SOURCE OUT LAUNCHES.json TARGET [KERNEL]     # runs them all and lists the survivors
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

DELETED = {
    "wait_group", "async_wait", "commit_group", "barrier", "wait", "arrive", "init", "async_load", "async_store", "async_gather",
    "buffer_load_to_shared", "global_load_to_shared", "global_to_shared", "store", "buffer_store",
}  # fmt: skip
COUNTED = {"wait_group", "async_wait"}


@dataclass(frozen=True)
class Mutant:
    """`text` is the whole file after the change `what` at `line`."""

    what: str
    line: int
    text: str


def mutants(text: str) -> Iterator[Mutant]:
    """All mutants of the jit functions of a file, in the order of the file."""
    tree = ast.parse(text)
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def span(node: ast.AST) -> tuple[int, int]:
        return lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset

    def change(node: ast.AST, new: str, what: str) -> Mutant:
        start, end = span(node)
        return Mutant(what, node.lineno, text[:start] + new + text[end:])

    def source(node: ast.AST) -> str:
        start, end = span(node)
        return text[start:end]

    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.decorator_list:
            for node in ast.walk(function):
                yield from _of(node, change, source)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _of(node: ast.AST, change, source) -> Iterator[Mutant]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _name(node.value) in DELETED:
        yield change(node, "pass", f"{_name(node.value)} deleted")
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        yield change(node, "pass", f"{source(node.target)} not advanced")
    if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and _name(node.iter) in ("range", "static_range"):
        bounds = node.iter.args
        end = bounds[1] if len(bounds) > 1 else bounds[0]
        step = source(bounds[2]) if len(bounds) > 2 else "1"
        yield change(end, f"({source(end)}) - ({step})", "loop one trip shorter")
    if not isinstance(node, ast.Call):
        return
    if _name(node) in COUNTED and node.args:
        yield change(node.args[0], f"({source(node.args[0])}) + 1", "wait count raised")
    if _name(node) == "index" and node.args:
        yield change(node.args[0], f"({source(node.args[0])}) + 1", "slot index raised")
    for keyword in node.keywords:
        if keyword.arg == "mask":
            yield change(keyword, "mask=None", "mask dropped") if not any(k.arg == "other" for k in node.keywords) else change(
                keyword, f"mask=({source(keyword.value)}) | True", "mask always on"
            )
            for part in ast.walk(keyword.value):
                if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Lt):
                    yield change(part, f"{source(part.left)} <= {source(part.comparators[0])}", "mask one too wide")
        if keyword.arg == "other":
            yield change(keyword, "other=1", "fill value changed")


def main(source: str, out: str, launches: str, target: str, kernel: str = "") -> None:
    """Run every mutant in this process; print survivors and the score."""
    import tempfile
    from pathlib import Path

    from translator.diagnostics import TranslationError
    from translator.source.launch_spec import read_launches
    from translator.validate.run import validate_pair
    from translator.validate.stages import source_stage, translated_stage

    specs = [spec for spec in read_launches(launches) if not kernel or spec.kernel == kernel]
    found, survivors, refused = 0, [], 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / Path(out).name
        for mutant in mutants(Path(out).read_text()):
            file.write_text(mutant.text)
            status = "validated"
            for spec in specs:
                left = source_stage(source, spec, target)
                try:
                    right = translated_stage(str(file), spec, target)
                except TranslationError:
                    status = "refused"
                    break
                result = validate_pair(left.text, right.text, spec, source_names=left.names, translated_names=right.names)
                status = result.status
                if status != "validated":
                    break
            refused += status == "refused"
            found += status in ("hazard", "mismatch")
            if status not in ("hazard", "mismatch", "refused"):
                survivors.append((status, mutant))
    for status, mutant in survivors:
        print(f"survives ({status}): line {mutant.line}: {mutant.what}")
    print(f"{found} found, {refused} do not compile, {len(survivors)} survive")


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
