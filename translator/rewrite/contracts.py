"""What a translation relies on, as code that refuses everything else by name.

Compile-time assumptions become `gl.static_assert`s at the top of the kernel; run-time ones a hook that runs before the
launch. A kernel relies on the number of warps as soon as it has a layout, and on tile sizes and element types as soon as
a layout is tied to them (matrix operands, linear layouts).
"""

from __future__ import annotations

import ast
import json
import os
import re
from dataclasses import dataclass
from typing import Any

from triton.runtime.jit import JITFunction

_UNTRANSLATED = "is in no launch that was translated"
_LAYOUT = re.compile(r"\bgl\.(?:amd\.)?\w*Layout\(")
# Layouts that fit one shape or one element type only.
_SHAPED = re.compile(
    r"\bgl\.(?:DistributedLinearLayout|DotOperandLayout|amd\.AMD(?:MFMA|WMMA)Layout|PaddedSharedLayout|SharedLinearLayout)\("
)
# Calls whose arguments give shapes.
_SHAPE_CALLS = frozenset(
    "arange zeros full reshape view broadcast_to expand_dims make_tensor_descriptor make_block_ptr ones zeros_like rand"
    " randint randn".split()
)


def untranslated(fn: JITFunction, node: ast.AST, condition: str) -> str:
    """The statement that stands for code which no launch reached, under a compile-time condition."""
    line = fn.def_file_line_number + node.lineno - 1
    where = f"{os.path.basename(fn.file_name or '')}:{line}"
    what = " ".join(condition.split()) or "this code"
    return f"gl.static_assert(False, {quoted(f'{fn.__name__}: `{what}` {_UNTRANSLATED} ({where})')})"


def is_untranslated(statement: ast.stmt) -> bool:
    """Whether the statement is what `untranslated` wrote."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and ast.unparse(call.func) == "gl.static_assert"
        and len(call.args) == 2
        and isinstance(call.args[1], ast.Constant)
        and _UNTRANSLATED in str(call.args[1].value)
    )


def quoted(text: str) -> str:
    """A string literal in double quotes."""
    return json.dumps(text, ensure_ascii=False)
