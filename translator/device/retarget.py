"""AMD TTGIR of a translated kernel -> TTGIR for a CUDA device, or a refusal that names what has no counterpart.

    text = retarget(module_text)          # text for `triton.compile`, target ("cuda", 90, 32)

What is kept: the kernel's arithmetic, masks, addresses, LDS buffers, copies, commit groups, waits, mbarriers, partitions, and
so its numbers and its synchronisation. What is not: AMD's barrier insertion, vmcnt translation, bank conflicts,
rounding inside the matrix instructions, speed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from translator.device import tdm_copies, retarget_memory
from translator.device.tdm_copies import Described
from translator.device.encodings import retarget_encodings
from translator.device.flow import DescriptorFlow
from translator.device.refusal import Refused
from translator.device.reshapes import moves_on_linear
from translator.device.retarget_memory import Names
from translator.device.unit_scales import plain_dots
from translator.device.scans import scans_on_blocked
from translator.ttgir.cta_parts import ctas_of
from translator.ttgir.layouts import Bases
from translator.ttgir.module import Module
from translator.ttgir.module_text import (
    indent_of,
    op_name,
    partition_warps,
    printed,
    with_number,
    with_target,
    without_attribute,
    without_attributes,
    without_locations,
)
from translator.ttgir.op import Op
from translator.ttgir.parse import parse_module, parse_op

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
    text = retarget_memory.without_zero_fill(plain_dots(without_locations(text)))
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
    "amdg.buffer_load": retarget_memory.buffer_load,
    "amdg.buffer_store": retarget_memory.buffer_store,
    "amdg.buffer_atomic_rmw": retarget_memory.buffer_atomic,
    "amdg.buffer_load_to_local": retarget_memory.buffer_load_to_local,
    "tt.load": retarget_memory.masked_load,
    "ttg.async_copy_global_to_local": retarget_memory.async_copy,
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
