"""Why a line of a translation is as it is: kept from the source, or changed or inserted for a reason.

The reasons are told from the text alone, so that they also work on a translation that was edited by hand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Set

from gluonize.product.report.review.units import Unit
from gluonize.read.text.parsed import parsed_text
from gluonize.rules import gluon
from gluonize.rules.gluon import PARTITIONS, Effect

# In the order in which a reader wants them; what each is, for legends.
REASONS = {
    "same": "as in the source",
    "spelling": "the source's line with Gluon's module name",
    "layout": "layouts: which lane and register holds what, and conversions between layouts",
    "staging": "memory: LDS buffers, copies to and from them, descriptors",
    "pipeline": "pipelining: prologue, waits, commit groups, slots",
    "rewrite": "the same operation written with Gluon's builtins",
    "guard": "what the translation relies on, checked",
    "header": "header and imports",
    "host": "host code",
    "repeated": "as in another version of the kernel",
}
KEPT = ("same", "spelling")  # the source's own
REPEATED = "repeated"
UNCHANGED = (*KEPT, REPEATED)


def _any(names: Iterable[str]) -> str:
    return rf"\.(?:{'|'.join(sorted(names))})\b"


# What moves tiles stands in modules of its own, all of it but waits and groups.
_MOVERS = ("async_copy", "tdm")
_MOVES = {
    op.name for op in gluon.OPS if set(_MOVERS) & set(op.home) and not op.effect & (Effect.WAITS | Effect.COMMITS)
}
_LAYOUT_VALUE = re.compile(rf"{_any(gluon.LAYOUTS)}|_layouts?\(")
_STAGING = re.compile(
    _any(gluon.named(Effect.ALLOCATES | Effect.DESCRIBES) | _MOVES) + r"|\b\w*smem\w*\.|_smem\b|shared_memory"
)
_PIPELINE = re.compile(
    _any(gluon.named(Effect.WAITS | Effect.COMMITS | Effect.SCHEDULES | Effect.MEETS) | {PARTITIONS})
    + r"|\bwait_\w+\(|NUM_BUFFERS|num_buffers|mbarrier|\b\w*ahead\b|slot\b"
)
_GUARD = re.compile(_any(gluon.named(Effect.CHECKS)) + r"\(|add_pre_run_hook|^_assume\w*\(|^raise\b")
_CONVERSIONS = gluon.named(Effect.CONVERTS)
_PIPELINE_COMMENT = re.compile(r"prologue|steady state|epilogue|commit group|in flight|drain|slot\b", re.I)
_STAGING_COMMENT = re.compile(r"\bLDS\b|shared memory|buffer", re.I)


def is_layout_constant(unit: Unit) -> bool:
    """`a_load: gl.constexpr = gl.BlockedLayout(...)`, or one taken from a function of layouts."""
    node = unit.node
    if isinstance(node, ast.AnnAssign):
        return "constexpr" in ast.unparse(node.annotation) and bool(_LAYOUT_VALUE.search(unit.text))
    return isinstance(node, ast.Assign) and bool(re.match(r"[\w, ]+= _?\w*layouts?\(", unit.text))


def insertion_reason(unit: Unit, following: str, in_prologue: bool) -> str:
    """Why a unit without a counterpart in the source is there; `following`: the reason of the unit after it."""
    text = unit.text
    if unit.kind in ("comment", "docstring", "line", "decorator"):
        if unit.kind == "comment" and _PIPELINE_COMMENT.search(text):
            return "pipeline"
        if unit.kind == "comment" and not following and _STAGING_COMMENT.search(text):
            return "staging"
        return following or "rewrite"
    if unit.kind in ("Import", "ImportFrom"):
        return "header"
    if is_layout_constant(unit):
        return "layout"
    if _GUARD.search(text):
        return "guard"
    if in_prologue:
        return "pipeline"
    return _by_operation(text) or ("layout" if any(name in text for name in _CONVERSIONS) else "rewrite")


def change_reason(source: Unit, result: Unit, source_names: Set[str], in_prologue: bool) -> str:
    """How a unit of the translation differs from the unit of the source that it comes from."""
    if source.text == result.text:
        return "same"
    if source.spelled == result.spelled:
        return "spelling"
    if is_layout_constant(result):
        return "layout"
    if in_prologue:
        return "pipeline"
    if _plain(source, source_names) == _plain(result, source_names):
        return "layout"
    return _by_operation(result.text) or "rewrite"


def _by_operation(text: str) -> str:
    if _STAGING.search(text):
        return "staging"
    return "pipeline" if _PIPELINE.search(text) else ""


class _WithoutLayouts(ast.NodeTransformer):
    """Drops layout arguments and conversions, and names variants after the variable that they are of."""

    def __init__(self, names: Set[str]):
        self.names = names

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in _CONVERSIONS and node.args:
            return node.args[0]
        node.keywords = [k for k in node.keywords if k.arg != "layout"]
        node.args = [a for a in node.args if not _is_layout(a)]
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.names:
            stems = [n for n in self.names if node.id.startswith(f"{n}_")]
            if stems:
                return ast.Name(max(stems, key=len), node.ctx)
        return node


def _is_layout(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("Layout")


def _plain(unit: Unit, names: Set[str]) -> str:
    try:
        tree = parsed_text("\n".join(_dedented(unit)))
    except SyntaxError:
        return unit.spelled
    return ast.unparse(_WithoutLayouts(names).visit(tree)).replace("tl.", "gl.")


def _dedented(unit: Unit) -> list[str]:
    indent = len(unit.lines[0]) - len(unit.lines[0].lstrip())
    lines = [line[indent:] if not line[:indent].strip() else line.lstrip() for line in unit.lines]
    return [*lines, "    pass"] if lines[-1].split("#")[0].rstrip().endswith(":") else lines
