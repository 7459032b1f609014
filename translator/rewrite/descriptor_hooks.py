"""Autotuning hooks that give a descriptor its block shape, in a file whose kernel takes `(base, shape, strides)` instead.

    nargs["a_desc"].block_shape = [block_m, block_k]
    -> if not isinstance(nargs["a_desc"], tuple):
           nargs["a_desc"].block_shape = [block_m, block_k]

A tuple has no block shape: the translated kernel has it from its own constants. The guard keeps the hook right for kernels
of the file that stay Triton.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from translator.rewrite.author_file import FileEdits
from translator.rewrite.gluon_function import Statement
from translator.rewrite.kernel_family import KernelVersion
from translator.rewrite.tree_walk import functions, lines, names, walk


def guard_hooks(statements: Sequence[Statement], versions: Sequence[KernelVersion], edits: FileEdits) -> None:
    """Guard the assignments to `block_shape` in the file's `pre_hook` functions."""
    tuples = {name for version in versions for name in version.emitted.record.descriptor_tuples}
    if not tuples:
        return
    hooks = _named_as_hooks(statements)
    for top, s in enumerate(statements):
        for hook in (f for f in functions(s) if f.name.value in hooks):
            for function in functions(hook):
                for line in lines(function.body):
                    if len(line.body) == 1 and (described := _described(line.body[0], tuples)) is not None:
                        edits.change(top, {line: lambda line, of=described: _guarded(line, of)})


def _named_as_hooks(statements: Sequence[Statement]) -> set[str]:
    """The names that are mentioned as a `pre_hook`, or whose result is."""
    given = (a for s in statements for a in walk(s) if isinstance(a, cst.Arg) and a.keyword is not None)
    return {name for a in given if a.keyword.value == "pre_hook" for name in names(a.value)}


def _described(small: cst.BaseSmallStatement, tuples: set[str]) -> cst.BaseExpression | None:
    """The descriptor of `nargs["name"].block_shape = ...`; of `nargs[name]` with any name that is not a constant."""
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return None
    target = small.targets[0].target
    target = target.value if isinstance(target, cst.Subscript) else target  # `.block_shape[0] = ...`
    if not isinstance(target, cst.Attribute) or target.attr.value != "block_shape":
        return None
    key = _key(target.value)
    known = key.evaluated_value if isinstance(key, (cst.SimpleString, cst.BaseNumber)) else None
    return target.value if known is None or known in tuples else None


def _key(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """`name` of `nargs[name]`."""
    inside = [e.slice for e in node.slice] if isinstance(node, cst.Subscript) else []
    return inside[0].value if len(inside) == 1 and isinstance(inside[0], cst.Index) else None


def _guarded(line: cst.SimpleStatementLine, described: cst.BaseExpression) -> cst.If:
    asked = cst.Call(cst.Name("isinstance"), [cst.Arg(described), cst.Arg(cst.Name("tuple"))])
    body = cst.IndentedBlock([line.with_changes(leading_lines=())])
    return cst.If(cst.UnaryOperation(cst.Not(), asked), body, leading_lines=line.leading_lines)
