"""What `@triton.jit` makes of a function, what is wrapped around it, and how a launch binds its arguments."""

from __future__ import annotations

from gluonize.triton_api.row import Row, names_of

_JIT = "triton.runtime.jit"
ROWS = (
    Row("JITFunction", f"{_JIT}:JITFunction", "kernels and helpers: source, parameters, globals"),
    Row("JITCallable", f"{_JIT}:JITCallable", "what a kernel may call: functions, constexpr functions, builtins"),
    Row(
        "ConstexprFunction",
        f"{_JIT}:ConstexprFunction",
        "functions of compile-time values, copied to outputs as they are",
    ),
    Row("KernelParam", f"{_JIT}:KernelParam", "parameters of a kernel that is written anew"),
    Row(
        "create_function_from_signature",
        f"{_JIT}:create_function_from_signature",
        "the specialization of recorded launches",
    ),
    Row(
        "InterpretedFunction",
        "triton.runtime.interpreter:InterpretedFunction",
        "kernels of a program under TRITON_INTERPRET",
    ),
    Row("KernelInterface", "triton.runtime:KernelInterface", "launchers that outputs have"),
    Row("Autotuner", "triton.runtime:Autotuner", "recorded launches of autotuned kernels"),
)
__getattr__ = names_of(__name__, ROWS)
