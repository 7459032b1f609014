"""AMD TTGIR of a translated kernel -> TTGIR for a CUDA device, or a refusal that names what has no counterpart.

    text = retarget(module_text)          # text for `triton.compile`, target ("cuda", 90, 32)

What is kept: the kernel's arithmetic, masks, addresses, LDS buffers, copies, commit groups, waits, mbarriers, partitions, and
so its numbers and its synchronisation. What is not: AMD's barrier insertion, vmcnt translation, bank conflicts,
rounding inside the matrix instructions, speed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from gluonize.judge.device.refusal import Refused
from gluonize.judge.device.retarget import memory, tdm_copies
from gluonize.judge.device.retarget.encodings import blocked_text, linear_text, retarget_encodings
from gluonize.judge.device.retarget.flow import DescriptorFlow
from gluonize.judge.device.retarget.memory import Names
from gluonize.judge.device.retarget.tdm_copies import Described
from gluonize.trace.model.attributes import Attribute, parse_attribute
from gluonize.trace.model.cta_parts import ctas_of
from gluonize.trace.model.layouts import Bases
from gluonize.trace.model.module import Module
from gluonize.trace.model.module_text import (
    definitions,
    indent_of,
    op_name,
    ops_named,
    partition_warps,
    printed,
    turned,
    with_number,
    with_ops,
    with_target,
    without_attribute,
    without_attributes,
    without_locations,
)
from gluonize.trace.model.op import Op
from gluonize.trace.model.parse import parse_module, parse_op

# Scaled fp8 dots whose scales are 1 as plain dots.
#
# before: `%d = tt.dot_scaled %a scale %s, %b scale %t, %c lhs = e4m3 rhs = e4m3 {...} : A, S * B, T -> C`
# after:  `%d = tt.dot %a, %b, %c : A * B -> C`

ONE = 127  # 2^0 as E8M0
FORMATS = ("e4m3", "e5m2")


def plain_dots(text: str) -> str:
    """The module with those dots replaced; scaled dots with other scales stay (and are refused later)."""
    constants = ops_named(text, "arith.constant")
    ones = {op.results[0] for op in constants if op.type.element == "i8" and op.constant.integer == ONE}
    return with_ops(text, ("tt.dot_scaled",), lambda op, line: _plain(op, ones))


def _plain(op: Op, ones: set[str]) -> list[str] | None:
    scales = {op.operands[i] for i in op.keywords("scale")}
    formats = [op.attribute(side) for side in ("lhs", "rhs")]
    if not scales <= ones or any(name not in FORMATS for name in formats):
        return None
    first, second, third = (i for i in range(len(op.operands)) if i not in op.keywords("scale"))
    a, b, c = (op.operands[i] for i in (first, second, third))
    left, right = (op.operand_types[i].printed for i in (first, second))
    return [f"{op.results[0]} = tt.dot {a}, {b}, {c} : {left} * {right} -> {op.type.printed}"]


# Scans need a blocked layout; a wave64 layout that became linear is converted around them.


def scans_on_blocked(text: str, warps: int) -> str:
    """Convert around scans of one tensor on a linear layout; scans on blocked layouts stay. `warps` of 32 lanes each.

    Raises: Refused for a scan on a linear layout of several tensors, or of one that CTAs of a cluster share.
    """
    module, lines = parse_module(text), text.splitlines()
    for scan in sorted((op for op in module.walk() if op.name == "tt.scan"), key=lambda op: -op.line):
        if _is_linear(module.attribute(scan.operand_types[0])):
            _convert(lines, scan, warps, module.clusters)
    return "\n".join(lines) + "\n"


def _convert(lines: list[str], scan: Op, warps: int, clusters: int) -> None:
    """Convert the operand of a scan, and its result back."""
    if len(scan.operands) > 1:
        raise Refused("tt.scan", "a scan of several tensors on a linear layout")
    if clusters > 1:
        raise Refused("tt.scan", "a scan on a linear layout that the CTAs of a cluster share")
    (operand,), (kind,), result = scan.operands, scan.operand_types, scan.results[0]
    blocked = replace(kind, layout=scan_layout(kind.shape, warps)).printed
    head, last = lines[scan.line - 1], lines[scan.end - 1]
    indent = indent_of(head)
    inner, moved = (f"%{what}_{result[1:]}" for what in ("scanned", "blocked"))
    # Attributes may stand before the types, and have types of their own.
    lines[scan.end - 1] = f"{last.partition(' : (')[0]} : ({blocked}) -> {blocked}"
    lines.insert(scan.end, f"{indent}{result} = ttg.convert_layout {inner} : {blocked} -> {kind.printed}")
    lines[scan.line - 1] = head.replace(f"({operand})", f"({moved})", 1).replace(f"{result} =", f"{inner} =", 1)
    lines.insert(scan.line - 1, f"{indent}{moved} = ttg.convert_layout {operand} : {kind.printed} -> {blocked}")


def _is_linear(layout: Attribute) -> bool:
    return any(part.kind in ("ttg.linear", "ttg.nvidia_mma") for part in layout.walk())


def scan_layout(shape: tuple[int, ...], warps: int) -> str:
    """Lanes along the last dimension, warps along the first."""
    threads, left = [1] * len(shape), 32
    for axis in reversed(range(len(shape))):
        threads[axis] = min(left, shape[axis])
        left //= threads[axis]
    threads[0] *= left
    return blocked_text([1] * len(shape), threads, [warps] + [1] * (len(shape) - 1), list(reversed(range(len(shape)))))


# Transposes and reshapes to or from a matrix layout: what the compiler infers for them depends on that layout, which has changed.
#
#     %b = tt.trans %a : T<#linear> -> T<#dot>     ->     %a_flat = ttg.convert_layout %a : T<#linear> -> T<flat>
#                                                         %b_flat = tt.trans %a_flat : T<flat> -> T<moved>
#                                                         %b = ttg.convert_layout %b_flat : T<moved> -> T<#dot>
#
# In `flat` consecutive elements lie in consecutive lanes, then warps, then registers; `moved` is what that becomes.

_MOVES = ("tt.trans", "tt.reshape")


def moves_on_linear(text: str, warps: int) -> str:
    """Convert around `tt.trans` and `tt.reshape` with a matrix layout on either side; `warps` of 32 lanes each.

    Raises: Refused where CTAs of a cluster share the tensor.
    """
    named = definitions(text)

    def change(op: Op, line: str) -> list[str] | None:
        kinds = (op.operand_types[0], op.type)
        layouts = [part for kind in kinds for part in parse_attribute(kind.layout, named).walk()]
        if not any(part.kind in ("ttg.nvidia_mma", "ttg.dot_op") for part in layouts):
            return None
        if any("CGALayout" in part.names for part in layouts):
            raise Refused(op.name, "a transpose or reshape of a product that the CTAs of a cluster share")
        return _converted(op, warps)

    return with_ops(text, _MOVES, change)


def _converted(op: Op, warps: int) -> list[str]:
    before, after, result = op.operand_types[0], op.type, op.results[0]
    axes = list(op.integers("order")) or None
    places = _places(math.prod(before.shape), warps)
    flat = linear_text(*([_coordinates(at, before.shape) for at in group] for group in places))
    moved = linear_text(*([_moved(at, before.shape, after.shape, axes) for at in group] for group in places))
    start, end = (f"%{side}_{result[1:]}" for side in ("from", "to"))
    source, target = replace(before, layout=flat).printed, replace(after, layout=moved).printed
    return [
        f"{start} = ttg.convert_layout {op.operands[0]} : {before.printed} -> {source}",
        turned(op, end, start, source, target),
        f"{result} = ttg.convert_layout {end} : {target} -> {after.printed}",
    ]


def _places(size: int, warps: int) -> tuple[list[int], list[int], list[int]]:
    """Which element each bit of a register, lane and warp number stands for, row by row; 0 where there are no more."""
    bits = [1 << b for b in range(size.bit_length() - 1)]
    lanes, spread = 5, warps.bit_length() - 1
    some = bits[: lanes + spread] + [0] * (lanes + spread - len(bits))
    return bits[lanes + spread :], some[:lanes], some[lanes:]


def _moved(at: int, shape: tuple[int, ...], new_shape: tuple[int, ...], axes: list[int] | None) -> list[int]:
    where = _coordinates(at, shape)
    return [where[d] for d in axes] if axes is not None else _coordinates(at, new_shape)


def _coordinates(at: int, shape: tuple[int, ...]) -> list[int]:
    """Of element `at`, row by row."""
    out = []
    for extent in reversed(shape):
        at, rest = divmod(at, extent)
        out.append(rest)
    return out[::-1]


SM = 90
MAX_WARPS = 32
# Ops that mean the same on both devices. Everything else is rewritten below or refused.
COMMON_DIALECTS = ("arith.", "math.", "scf.", "cf.", "ub.")
COMMON_OPS = frozenset(
    """tt.addptr tt.assert tt.atomic_cas tt.atomic_rmw tt.bitcast tt.broadcast tt.call tt.cat tt.clampf tt.dot tt.expand_dims
    tt.fp_to_fp tt.func tt.gather tt.get_num_programs tt.get_program_id tt.histogram tt.int_to_ptr tt.join tt.load
    tt.make_range tt.map_elementwise tt.map_elementwise.return tt.mulhiui tt.precise_divf tt.precise_sqrt tt.print
    tt.ptr_to_int tt.reduce tt.reduce.return tt.reshape tt.return tt.scan tt.scan.return tt.splat tt.split tt.store tt.trans
    tt.unsplat tt.approx_divf ttg.async_commit_group ttg.async_copy_global_to_local ttg.async_wait ttg.barrier
    ttg.convert_layout ttg.fp4_to_fp ttg.local_alloc ttg.local_dealloc ttg.local_gather ttg.local_load ttg.local_scatter
    ttg.local_store ttg.local_atomic_scatter_rmw ttg.memdesc_index ttg.memdesc_reshape ttg.memdesc_subslice ttg.memdesc_trans
    ttg.warp_specialize ttg.warp_yield ttg.warp_return gpu.barrier""".split()
)
DROPPED = (
    "llvm.intr.assume",
    "amdg.tdm_prefetch",
    "rocdl.sched.barrier",
    "rocdl.s.setprio",
    "rocdl.iglp.opt",
    "rocdl.sched.group.barrier",
)
REASONS = {
    "tt.elementwise_inline_asm": "inline assembly belongs to one architecture",
    "ttg.inline_asm": "inline assembly belongs to one architecture",
    "tt.extern_elementwise": "a function of AMD's device library",
    "tt.dot_scaled": "scaled dots with scales have no counterpart on sm_90",
    "ttg.memdesc_reinterpret": "LDS is re-targeted without padding, so other bytes would be seen",
    "amdg.cond_barrier": "a barrier for part of the warps",
}
FOREIGN_TYPES = {"f8E4M3FNUZ": "FNUZ fp8", "f8E5M2FNUZ": "FNUZ fp8", "f8E4M3B11FNUZ": "fp8e4b15"}


@dataclass
class _State:
    """What is known while the lines go by. `module` is the AMD one, `warps` the stack of the surrounding partitions' warps; arrived: the
    line before is the arrival at a barrier of the cluster."""

    module: Module
    warps: list[int]
    names: Names = field(default_factory=Names)
    known: dict[str, Described] = field(default_factory=dict)
    depth: list[bool] = field(default_factory=list)
    arrived: bool = False

    def ctas(self, op: Op) -> Bases:
        """How the CTAs of a cluster share the tile in LDS that an operation names; () of a program of one CTA."""
        if self.module.clusters == 1:
            return ()
        return ctas_of(self.module, op.memdesc)


def retarget(text: str) -> str:
    """Rewrite a printed AMD module. Raises: Refused, naming the op, encoding, type or limit without a counterpart."""
    text = memory.without_zero_fill(plain_dots(without_locations(text)))
    module = parse_module(text)
    lanes, warps = _geometry(module)
    _refuse_types(module)
    _refuse_mixed_counters(module)
    text = retarget_encodings(text, lanes)
    warps = warps * lanes // 32
    text = moves_on_linear(scans_on_blocked(text, warps), warps)
    state = _State(module, [warps])
    flow = DescriptorFlow(state.known, state.names)
    out = []
    for line in text.splitlines():
        line = flow.renamed(line)
        if line.startswith("module"):
            line = _module_line(line, state.warps[0])
        elif line.lstrip().startswith("tt.func"):
            line = without_attribute(flow.parameters(line), "tt.pointer_range")
        _track_partitions(line, state)
        indent = indent_of(line)
        out += [indent + new if new and not new.startswith(" ") else new for new in _op(line, state, flow)]
        out += flow.prologue()
    return "\n".join(out) + "\n"


def _geometry(module: Module) -> tuple[int, int]:
    """(lanes, warps) of the module. Raises: Refused where they do not fit a CUDA block."""
    lanes, warps = module.lanes, module.warps
    if module.clusters > 1 and lanes != 32:
        raise Refused("num_ctas", f"a cluster of workgroups whose warps have {lanes} lanes")
    total = max(warps, module.number("ttg.total-num-warps", warps))
    if total * lanes > MAX_WARPS * 32:
        raise Refused("num_warps", f"{total * lanes} threads; a CUDA block has at most {MAX_WARPS * 32}")
    return lanes, warps


def _refuse_types(module: Module) -> None:
    for name, what in FOREIGN_TYPES.items():
        if name in module.elements:
            raise Refused(name, f"{what} has no counterpart on a CUDA device")


def _refuse_mixed_counters(module: Module) -> None:
    """TDM copies and async copies have counters of their own on gfx1250 and would share one here."""
    if module.has("amdg.async_tdm_wait") and module.has("ttg.async_copy_global_to_local", "ttg.async_wait"):
        raise Refused("ttg.async_wait", "a kernel that mixes TDM and async_copy counters")


def _module_line(line: str, warps: int) -> str:
    line = without_attribute(without_attribute(line, "ttg.total-num-warps"), "ttg.maxnreg")
    line = with_number(with_number(line, "ttg.num-warps", warps), "ttg.threads-per-warp", 32)
    return with_target(line, f"cuda:{SM}")


def _track_partitions(line: str, state: _State) -> None:
    """Keep the number of warps that run the current line."""
    stripped = line.strip()
    if stripped.startswith("}") and state.depth and state.depth.pop():
        state.warps.pop()
    if not stripped.endswith("{") or stripped.startswith(("module", "tt.func")):
        return
    warps = partition_warps(stripped)
    state.depth.append(warps is not None)
    if warps is not None:
        state.warps.append(warps)


def _op(line: str, state: _State, flow: DescriptorFlow) -> list[str]:
    """The line or what replaces it."""
    name = op_name(line)
    if state.arrived and name != "amdg.cluster_barrier_wait":
        raise Refused("amdg.cluster_barrier_arrive", "a CUDA device's barrier of a cluster is arrival and wait in one")
    if name in MEMORY:
        return MEMORY[name](parse_op(line), state.names)
    if name in DESCRIPTORS:
        lines, result, new = DESCRIPTORS[name](parse_op(line), state)
        state.known[result] = new
        return lines
    if name in REWRITTEN:
        return REWRITTEN[name](parse_op(line), state)
    if name in DROPPED:
        return []
    if not name or name.startswith(COMMON_DIALECTS) or name in COMMON_OPS:
        return [flow.line(_plain_attributes(line))]
    raise Refused(name, REASONS.get(name, "no counterpart on a CUDA device is known"))


def _plain_attributes(line: str) -> str:
    """Without attributes that only AMD's lowering reads."""
    line = without_attribute(line, "ttg.amdg.*")
    return without_attributes(line) if op_name(line) == "ttg.warp_specialize" else line


def _tdm_wait(op: Op, state: _State) -> list[str]:
    return [f"{op.results[0]} = ttg.async_wait {{num = {op.attribute('num')} : i32}}"]


def _same_barrier(op: Op, state: _State) -> list[str]:
    return [printed(op, op.name.replace("amdg.", "ttng."))]


def _arrive_barrier(op: Op, state: _State) -> list[str]:
    """Every lane arrives on AMD; here one lane carries the sum. The phase that the op returns has no counterpart."""
    if op.target.element != "i32" or len(op.operands) > 1 or op.counted is None:
        raise Refused(op.name, "an operand form that is not known")
    arrivals = op.counted * state.warps[-1] * 32
    return [f"ttng.arrive_barrier {op.operands[0]}, {arrivals} : {op.operand_types[0].printed}"]


def _copies_arrive(op: Op, state: _State) -> list[str]:
    """Every lane arrives once its copies have landed on AMD; here they are waited for, and one lane carries the sum."""
    if len(op.operands) > 1 or op.words:
        raise Refused(op.name, "an operand form that is not known")
    group, landed = state.names("group"), state.names("landed")
    return [
        f"{group} = ttg.async_commit_group",
        f"{landed} = ttg.async_wait {group} {{num = 0 : i32}}",
        f"ttng.arrive_barrier {op.operands[0]}, {state.warps[-1] * 32} : {op.operand_types[0].printed}",
    ]


def _cluster_arrive(op: Op, state: _State) -> list[str]:
    state.arrived = True
    return []


def _cluster_wait(op: Op, state: _State) -> list[str]:
    if not state.arrived:
        raise Refused(op.name, "a wait for the cluster without an arrival before it")
    state.arrived = False
    return ["ttng.cluster_barrier"]


MEMORY = {
    "amdg.buffer_load": memory.buffer_load,
    "amdg.buffer_store": memory.buffer_store,
    "amdg.buffer_atomic_rmw": memory.buffer_atomic,
    "amdg.buffer_load_to_local": memory.buffer_load_to_local,
    "tt.load": memory.masked_load,
    "ttg.async_copy_global_to_local": memory.async_copy,
}
DESCRIPTORS = {
    "tt.make_tensor_descriptor": lambda op, state: tdm_copies.make(op, state.names),
    "amdg.update_tensor_descriptor": lambda op, state: tdm_copies.update(op, state.names, state.known),
}
REWRITTEN = {
    "amdg.async_tdm_copy_global_to_local": lambda op, s: tdm_copies.copy_in(
        op, s.names, s.known, s.warps[-1], s.ctas(op)
    ),
    "amdg.async_tdm_copy_local_to_global": lambda op, s: tdm_copies.copy_out(
        op, s.names, s.known, s.warps[-1], s.ctas(op)
    ),
    "amdg.async_tdm_wait": _tdm_wait,
    "amdg.cluster_barrier_arrive": _cluster_arrive,
    "amdg.cluster_barrier_wait": _cluster_wait,
    "amdg.init_barrier": _same_barrier,
    "amdg.wait_barrier": _same_barrier,
    "amdg.arrive_barrier": _arrive_barrier,
    "amdg.async_copy_mbarrier_arrive": _copies_arrive,
}
