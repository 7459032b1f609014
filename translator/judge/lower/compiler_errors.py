"""What Triton's compiler raised or printed, as a Diagnostic with a place in the user's file."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gluonize.diagnostics import Diagnostic
from gluonize.judge.lower.stderr_log import error_lines

_EMPTY_REASON = re.compile(r"PassManager::run failed|error encountered during parsing")
_NARROW_OFFSETS = "offsets element type must be int32"
_MLIR_PLACE = re.compile(r"([\w./+-]+\.py)[\":]+(\d+):(\d+)")


def compiler_diagnostic(
    error: BaseException, fn: Any, stderr: str, what: str, signature: Mapping[str, Any] = MappingProxyType({})
) -> Diagnostic:
    """`compiler-error` for an exception out of `triton.compile`; `what` names the compile, `fn` is the jit function, `signature` that of
    the launch.

    The place is the innermost one that lies in the file of `fn`; the reason is the innermost message, then what MLIR
    and LLVM printed.
    """
    from gluonize.triton_api.front_end import CompilationError

    chain = list(_causes(error))
    file, line, column = fn.fn.__code__.co_filename, 0, 0
    for cause in chain:
        if isinstance(cause, CompilationError) and hasattr(cause.node, "lineno"):
            if start := _first_line(cause.src, fn):
                line, column = start + cause.node.lineno - 1, cause.node.col_offset + 1
    printed = error_lines(stderr)
    if not line and printed and (found := _MLIR_PLACE.search(printed[0])):
        file, line, column = found.group(1), int(found.group(2)), int(found.group(3))
        if fn.fn.__code__.co_filename.endswith(file):
            file = fn.fn.__code__.co_filename
    reason = next((text for cause in reversed(chain) if (text := _message(cause, fn.__name__))), type(error).__name__)
    # A failed pass raises only that it failed; what it found wrong is in what it printed.
    reasons = printed if printed and _EMPTY_REASON.search(reason) else [reason, *printed]
    why = "\n       ".join(dict.fromkeys(reasons))
    wide = [name for name, kind in signature.items() if kind in ("i64", "u64")]
    help = ""
    if _NARROW_OFFSETS in why and wide and fn.is_gluon():
        why = f"{fn.__name__} is translated for offsets of 32 bits, and this launch has numbers of 64 bits: {', '.join(wide)}"
        help = "translate it for this launch, too"
    return Diagnostic("compiler-error", f"{what} does not compile", file, line, column, why, help)


def _causes(error: BaseException):
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _message(error: BaseException, kernel: str) -> str:
    from gluonize.triton_api.front_end import CompileTimeAssertionFailure

    text = getattr(error, "error_message", None)
    if not text and isinstance(error, CompileTimeAssertionFailure):
        text = f"{kernel} asserts {ast.unparse(error.node.args[0])}"
    if text is None and not hasattr(error, "node"):
        text = f"{type(error).__name__}: {error}" if str(error) else ""
    lines = [line.strip() for line in str(text or "").splitlines() if line.strip()]
    return " ".join(lines)[:600]


def _first_line(source: str | None, fn: Any) -> int:
    """The line of the file of `fn` on which `source`, the code of `fn` or of a helper beside it, starts; 0 if not there."""
    if not source:
        return 0
    if source == fn.src:
        return fn.def_file_line_number
    lines = linecache.getlines(fn.fn.__code__.co_filename)
    head = source.splitlines()[0].strip()
    places = [number for number, text in enumerate(lines, 1) if text.strip() == head]
    return places[0] if len(places) == 1 else 0
