"""Targets, the AMD backend's compiler and its options, drivers, knobs."""

from __future__ import annotations

from gluonize.triton_api.row import Row, names_of

ROWS = (
    Row("GPUTarget", "triton.backends.compiler:GPUTarget", "which machine to compile for"),
    Row("make_backend", "triton.compiler.compiler:make_backend", "the compiler of a target, its options and stages"),
    Row("amd_compiler", "triton.backends.amd.compiler", "what its pipeline of passes asks of a target"),
    Row("driver", "triton.runtime:driver", "the active driver, which stands for a GPU that is not there"),
    Row("DriverConfig", "triton.runtime.driver:DriverConfig", "host code that asks which GPU there is"),
    Row("knobs", "triton:knobs", "settings that change what is compiled"),
)
__getattr__ = names_of(__name__, ROWS)
