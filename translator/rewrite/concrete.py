"""The last look at an output before anybody gets it: its concrete syntax tree must give back the same text.

Edits are made by source spans; libcst, which knows every comment and space, is the second opinion that the result is one
well-formed module.
"""

from __future__ import annotations

import libcst

from translator.diagnostics import InternalError


def check_concrete(text: str) -> None:
    """Raises InternalError when `text` is not a module that libcst reads and writes back unchanged."""
    try:
        written = libcst.parse_module(text).code
    except libcst.ParserSyntaxError as error:
        raise InternalError(f"the output is not a Python module: {error}") from error
    if written != text:
        raise InternalError("the output's concrete tree does not give back its text")
