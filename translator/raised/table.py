"""How each operation of a module is spelled in Gluon: one row each. An operation without a row is refused.

A template has `{0}`, `{1}`, ... for operands, which are broadcast where it says so, `{dtype}`, `{shape}` and `{layout}` for those of the
result, `{unsigned}` for the result's type without a sign, `{shared}` for its layout in LDS, `{copies}` for the module of asynchronous copies,
`{sem}` and `{scope}` of an atomic operation, `{counted}` and `{count}` of a barrier, `{nan}` for what becomes of those, and `{name}` for an attribute. One
that is an operator between two operands needs no brackets; the writer puts them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gluonize.trace.model.language import (
    FUNCTIONS,
    NAN_KEEPING,
    OPERATORS,
    UNSIGNED_FUNCTIONS,
    UNSIGNED_OPERATORS,
)


@dataclass(frozen=True)
class Row:
    """template: see above. broadcasts: operands may be smaller than the result. unsigned: operands are taken without their sign, and
    the result is given one. pure: it may be written where it is used. inferred: Gluon finds the layout of the result itself,
    by the operation of this name in `gluonize.decide.layouts.inferred`.
    """

    template: str
    broadcasts: bool = False
    unsigned: bool = False
    pure: bool = True
    inferred: str = ""


def _operator(sign: str, unsigned: bool = False) -> Row:
    return Row(f"{{0}} {sign} {{1}}", broadcasts=True, unsigned=unsigned)


def _function(name: str, count: int = 1, unsigned: bool = False) -> Row:
    return Row(f"gl.{name}({', '.join(f'{{{i}}}' for i in range(count))})", broadcasts=count > 1, unsigned=unsigned)


_NAN = "propagate_nan=gl.PropagateNan.ALL"
ROWS: dict[str, Row] = {
    # Arithmetic
    **{name: _operator(sign) for name, sign in OPERATORS.items()},
    **{name: _operator(sign, unsigned=True) for name, sign in UNSIGNED_OPERATORS.items()},
    "arith.negf": Row("-{0}"),
    "tt.clampf": Row("gl.clamp({0}, {1}, {2}{nan})", broadcasts=True),
    **{name: _function(called, count) for name, (called, count) in FUNCTIONS.items()},
    **{name: _function(called, 2, unsigned=True) for name, called in UNSIGNED_FUNCTIONS.items()},
    **{name: Row(f"gl.{called}({{0}}, {{1}}, {_NAN})", broadcasts=True) for name, called in NAN_KEEPING.items()},
    # Other types
    "arith.extf": Row("{0}.to({dtype})"),
    "arith.truncf": Row("{0}.to({dtype})"),
    "arith.fptosi": Row("{0}.to({dtype})"),
    "arith.fptoui": Row("{0}.to({unsigned}).to({dtype})"),
    "arith.bitcast": Row("{0}.to({dtype}, bitcast=True)"),
    "tt.bitcast": Row("{0}.to({dtype}, bitcast=True)"),
    "tt.ptr_to_int": Row("{0}.to({dtype})"),
    "tt.int_to_ptr": Row("{0}.to({dtype})"),
    # Programs and shapes
    "tt.get_program_id": Row("gl.program_id({axis})"),
    "tt.get_num_programs": Row("gl.num_programs({axis})"),
    "tt.make_range": Row("gl.arange({start}, {end}, {layout})"),
    "tt.reshape": Row("{0}.reshape({shape})", inferred="reshape"),
    "tt.trans": Row("{0}.permute({order})", inferred="permute"),
    "tt.join": Row("gl.join({0}, {1})", inferred="join"),
    "tt.split": Row("gl.split({0})", inferred="split"),
    "tt.gather": Row("gl.gather({0}, {1}, {axis})"),
    **dict.fromkeys(
        ("ttg.convert_layout", "amdg.in_thread_transpose"), Row("gl.convert_layout({0}, {layout})", pure=False)
    ),
    "ttg.fp4_to_fp": Row("gl.fp4_to_fp({0}, {dtype}, {axis})", inferred="fp4_to_fp"),
    # LDS
    "ttg.memdesc_trans": Row("{0}.permute({order})"),
    "ttg.memdesc_reinterpret": Row("{0}.reinterpret({dtype}, {shape}, {shared})"),
    "ttg.memdesc_reshape": Row("{0}.reshape({shape})"),
    "ttg.local_store": Row("{1}.store({0})", pure=False),
    "ttg.local_dealloc": Row("{0}._keep_alive()", pure=False),
    "ttg.async_commit_group": Row("{copies}.commit_group()", pure=False),
    "tt.atomic_cas": Row('gl.atomic_cas({0}, {1}, {2}, sem="{sem}", scope="{scope}")', pure=False),
    # Barriers in LDS, and those of a cluster
    "amdg.init_barrier": Row("gl.amd.cdna5.mbarrier.init({0}, {counted})", pure=False),
    "amdg.arrive_barrier": Row("gl.amd.cdna5.mbarrier.arrive({0}{count})", pure=False),
    "amdg.wait_barrier": Row("gl.amd.cdna5.mbarrier.wait({0}, {1})", pure=False),
    "amdg.async_copy_mbarrier_arrive": Row("gl.amd.cdna5.async_copy.mbarrier_arrive({0})", pure=False),
    "amdg.cluster_barrier_arrive": Row("gl.amd.cdna5.cluster.arrive()", pure=False),
    "amdg.cluster_barrier_wait": Row("gl.amd.cdna5.cluster.wait()", pure=False),
    # Order
    "llvm.intr.assume": Row("gl.assume({0})", pure=False),
    "ttg.barrier": Row("gl.barrier()", pure=False),
    "rocdl.s.setprio": Row('gl.inline_asm("s_setprio {word}")', pure=False),  # how soon a warp is taken before others
    "gpu.barrier": Row("gl.barrier()", pure=False),
}
# Operations whose result is a token alone, though the type of where they write is printed behind an arrow.
COPIES = frozenset(
    (
        "ttg.async_copy_global_to_local",
        "amdg.buffer_load_to_local",
        "amdg.async_tdm_copy_global_to_local",
        "amdg.async_tdm_copy_local_to_global",
        "amdg.async_tdm_gather",
        "amdg.async_tdm_scatter",
    )
)
# What acts on GPUs of other makers alone.
NOTHING = frozenset(("tt.grid_dependency_wait", "tt.grid_dependency_launch_dependents"))
# What makes two halves of a workgroup's warps alternate, which Triton's passes add last, and why Gluon cannot say it.
PING_PONG = {
    "rocdl.workitem.id.x": "Gluon has no number that the threads of a program differ in, by which half of the warps is chosen here",
    "amdg.cond_barrier": "Gluon has no barrier at which only some warps wait",
    "rocdl.s.barrier": "Gluon's barrier waits for LDS too",
    "rocdl.sched.group.barrier": "Gluon has no order of kinds of instructions",
}
# In which order the text of an operation evaluates its operands, where that is not the order in which they are printed: Triton's code generator
# visits keyword arguments before the others (`CodeGenerator.visit_Call`).
ORDERS: dict[str, Callable[[list[str]], list[str]]] = {
    "tt.load": lambda v: [*v[1:], v[0]],
    "tt.store": lambda v: [*v[2:], *v[:2]],
    "tt.histogram": lambda v: [*v[1:], v[0]],
    "tt.atomic_rmw": lambda v: [*v[2:], *v[:2]],
    "ttg.local_store": lambda v: [v[1], v[0]],
    "ttg.async_copy_global_to_local": lambda v: [*v[2:], v[1], v[0]],
    "amdg.buffer_load": lambda v: [*v[2:], *v[:2]],
    "amdg.buffer_store": lambda v: [*v[3:], *v[:3]],
    "amdg.buffer_load_to_local": lambda v: [*v[2:-1], v[-1], *v[:2]],
    "amdg.buffer_atomic_rmw": lambda v: [*v[3:], *v[1:3], v[0]],
    "amdg.update_tensor_descriptor": lambda v: [*v[1:], v[0]],
    "amdg.async_tdm_copy_global_to_local": lambda v: [*v[1:], v[0]],
    "amdg.async_tdm_copy_local_to_global": lambda v: [*v[1:], v[0]],
}
# What is promised of numbers, innermost first.
PROMISES = {"tt.divisibility": "multiple_of", "tt.contiguity": "max_contiguous", "tt.constancy": "max_constancy"}
