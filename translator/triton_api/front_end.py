"""Triton's code generator, which is our type checker; what it is given, and the errors that it raises."""

from __future__ import annotations

from gluonize.triton_api.row import Row, names_of

_ERRORS = "triton.compiler.errors"
ROWS = (
    Row("code_generator", "triton.compiler.code_generator", "`CodeGenerator`, whose visits are recorded"),
    Row("ASTSource", "triton.compiler:ASTSource", "a Triton kernel with its specialization"),
    Row(
        "GluonASTSource", "triton.experimental.gluon._runtime:GluonASTSource", "a Gluon kernel with its specialization"
    ),
    Row("GluonJITFunction", "triton.experimental.gluon._runtime:GluonJITFunction", "outputs that ask what is Gluon"),
    Row("CompilationError", f"{_ERRORS}:CompilationError", "what the front end refuses"),
    Row("CompileTimeAssertionFailure", f"{_ERRORS}:CompileTimeAssertionFailure", "a `static_assert` that fails"),
)
__getattr__ = names_of(__name__, ROWS)
