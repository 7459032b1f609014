"""Kernels that calls make: the call makes a Gluon kernel of the function, which is a Gluon one now.

kernel = triton.jit(do_not_specialize=["n"])(add)
-> kernel = _checked_add(gluon.jit(do_not_specialize=["n"])(add))
"""

from __future__ import annotations

import ast
from typing import Any

import libcst as cst
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.gluon.trees.function import JIT, expression
from gluonize.output.file.author import AuthorFile, FileEdits
from gluonize.read.evaluate.jit_calls import JitCall, jit_calls
from gluonize.read.kernels.load import LoadedKernel
from gluonize.read.names.scope import Scope


def edit_calls(file: AuthorFile, loaded: LoadedKernel, hook: str, edits: FileEdits) -> list[ast.expr]:
    """Edit every call that makes a kernel of the function; -> what they no longer call.

    hook: the name of a decorator for what they give, or "".
    Raises: TranslationError `kernel-form` where something else makes it a kernel.
    """
    calls = [call for call in _calls(loaded) if call.function is loaded.node]
    if not calls or any(call.maker is None for call in calls):
        raise TranslationError(_unknown_form(loaded))
    makers = [call.maker for call in calls if call.maker is not None]
    for call, maker in zip(calls, makers):
        top = file.top(call.node.lineno)
        edits.change(top, {file.node(maker): _gluon_jit})
        if hook:
            edits.change(top, {file.node(call.node): lambda made: _checked(made, hook)})
    return makers


def _gluon_jit(maker: Any) -> cst.BaseExpression:
    return expression(JIT).with_changes(lpar=maker.lpar, rpar=maker.rpar)


def _checked(made: cst.Call, hook: str) -> cst.Call:
    bare = made.with_changes(lpar=(), rpar=())
    return cst.Call(cst.Name(hook), [cst.Arg(bare)], lpar=made.lpar, rpar=made.rpar)


def _calls(loaded: LoadedKernel) -> tuple[JitCall, ...]:
    """The calls in the body that the function is defined in."""
    if loaded.program is None or loaded.node is None:
        return ()
    scope = loaded.program.import_known(loaded.module)
    for part in loaded.qualname.split(".")[:-1]:
        if part != "<locals>":
            scope = _inside(scope, part, loaded.line)
    return jit_calls(scope)


def _inside(scope: Scope, name: str, line: int) -> Scope:
    """The body of the function or class of that name around a line."""
    nodes = [b.node for b in scope.bindings.by_name[name] if b.kind in ("def", "class")]
    return scope.inside(next(n for n in nodes if n.lineno <= line <= (n.end_lineno or line)))  # type: ignore[attr-defined]


def _unknown_form(loaded: LoadedKernel) -> Diagnostic:
    name = loaded.qualname.rpartition(".")[2]
    place = loaded.path, loaded.line, (loaded.node.col_offset if loaded.node else 0) + 1
    made = next((d for d in loaded.decorators if d.kind == "made"), None)
    why = (
        f"`{made.text}` (line {made.line}) gives a jit function; what it does beside that is not known" if made else ""
    )
    help = (
        "put @triton.jit above its def; or give its launches without SOURCE (batch mode), which writes the kernel alone"
    )
    message = f"{name} is made a kernel by something other than triton.jit"
    return Diagnostic("kernel-form", message, *place, why, help)
