"""Refusals at a place of the source."""

from __future__ import annotations

from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.text.moved_lines import file_line
from gluonize.trace.front.trace import Frame


def refuse(frame: Frame, node: Any, code: str, message: str, why: str = "", help: str = "") -> TranslationError:
    """A located refusal for a node of a traced function."""
    fn = frame.fn
    line = line_of(frame, node) if hasattr(node, "lineno") else fn.def_file_line_number
    column = getattr(node, "col_offset", 0) + 1
    return TranslationError(Diagnostic(code, message, fn.file_name or "", line, column, why, help))


def line_of(frame: Frame, node: Any) -> int:
    """The line of the file that a node of a traced function is in; its own number counts from the function's first line."""
    return file_line(frame.fn, node.lineno)
