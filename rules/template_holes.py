"""The holes of a template, found by libcst: what `gluonize.rules.template` asks for when it parses one."""

from __future__ import annotations

import libcst as cst

from gluonize.rules.hole_names import ARGUMENTS, OPERAND, Parts

_MARK = "\N{CYRILLIC LETTER MULTIOCULAR O}"  # of names that nobody writes: stands around holes while they are printed
_EMPTY = cst.Module([])


def parts_of_template(text: str, left_out: frozenset[str]) -> tuple[Parts, tuple[Parts, list[Parts]] | None]:
    """The parts of a template without the arguments whose hole is left out; of a call also those of function and arguments.

    Raises: ValueError for what is no Python expression.
    """
    try:
        body = cst.parse_expression(text)
    except cst.ParserSyntaxError as error:
        raise ValueError(f"the template `{text}` is no Python expression: {error.message}") from error
    marked = cst.ensure_type(body.visit(_Marked(left_out)), cst.BaseExpression)
    call = (_parts(marked.func), [_parts(a) for a in marked.args]) if isinstance(marked, cst.Call) else None
    return _parts(marked), call


def _parts(node: cst.CSTNode) -> Parts:
    return tuple(_EMPTY.code_for_node(node).split(_MARK))


def _hole(node: cst.CSTNode) -> str | None:
    """The name of a hole, None of anything else."""
    if not isinstance(node, cst.Set) or len(node.elements) != 1:
        return None
    value = node.elements[0].value
    return value.value if isinstance(value, cst.Name) else ARGUMENTS if isinstance(value, cst.Ellipsis) else None


def _operand(original: cst.CSTNode, updated: cst.CSTNode) -> cst.CSTNode:
    """A hole that has to be an operand is marked as one."""
    name = _hole(original)
    return updated if name is None else cst.Name(f"{_MARK}{OPERAND}{name}{_MARK}")


class _Marked(cst.CSTTransformer):
    """Holes as marks, arguments that are left out removed, commas made anew."""

    def __init__(self, left_out: frozenset[str]):
        super().__init__()
        self.left_out = left_out

    def leave_Set(self, original_node, updated_node):
        name = _hole(original_node)
        return updated_node if name is None else cst.Name(f"{_MARK}{name}{_MARK}")

    def leave_Arg(self, original_node, updated_node):
        if _hole(original_node.value) in self.left_out:
            return cst.RemoveFromParent()
        return updated_node.with_changes(comma=cst.MaybeSentinel.DEFAULT)

    def leave_Attribute(self, original_node, updated_node):
        return updated_node.with_changes(value=_operand(original_node.value, updated_node.value))

    def leave_Subscript(self, original_node, updated_node):
        return updated_node.with_changes(value=_operand(original_node.value, updated_node.value))

    def leave_BinaryOperation(self, original_node, updated_node):
        left, right = (_operand(getattr(original_node, x), getattr(updated_node, x)) for x in ("left", "right"))
        return updated_node.with_changes(left=left, right=right)

    def leave_UnaryOperation(self, original_node, updated_node):
        return updated_node.with_changes(expression=_operand(original_node.expression, updated_node.expression))

    def leave_Comparison(self, original_node, updated_node):
        return updated_node.with_changes(left=_operand(original_node.left, updated_node.left))

    def leave_ComparisonTarget(self, original_node, updated_node):
        return updated_node.with_changes(comparator=_operand(original_node.comparator, updated_node.comparator))
