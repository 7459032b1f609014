"""Counts of a hand-written assembly text; every expected number was counted by hand."""

import dataclasses

import pytest

from gluonize.judge.lower.amdgcn import Instruction, parse_instructions
from gluonize.judge.lower.loops import find_loops
from gluonize.judge.lower.metrics import classes, count, measure
from gluonize.rules.targets import target

KERNEL = """\
\t.text
\t.globl\tkernel
kernel:                                 ; @kernel
; %bb.0:
\ts_load_dwordx4 s[0:3], s[0:1], 0x0
\tv_lshlrev_b32_e32 v1, 2, v0
\ts_waitcnt lgkmcnt(0)
\tbuffer_load_dwordx4 v[2:5], v1, s[4:7], 0 offen
.LBB0_1:                                ; outer loop
\ts_mov_b32 s8, 0
.LBB0_2:                                ; inner loop with the matrix instructions
\tbuffer_load_dwordx4 v1, s[4:7], 0 offen lds
\ts_waitcnt vmcnt(0)
\ts_barrier
\tds_read_b128 v[6:9], v1
\tds_read2_b32 v[6:7], v1 offset1:1
\tv_mfma_f32_32x32x16_f16 v[0:15], v[6:9], v[6:9], v[0:15]
\tv_add_f32_dpp v1, v1, v1 row_shr:8 row_mask:0xf bank_mask:0xf
\ts_cbranch_scc1 .LBB0_2
; %bb.3:
\tglobal_atomic_add_f32 v1, v2, s[0:1]
\ts_cbranch_vccnz .LBB0_1
.LBB0_4:                                ; a second innermost loop, longer, without matrix instructions
\tv_exp_f32_e32 v1, v1
\tv_exp_f32_e32 v1, v1
\tv_exp_f32_e32 v1, v1
\tv_exp_f32_e32 v1, v1
\tv_exp_f32_e32 v1, v1
\tv_exp_f32_e32 v1, v1
\tv_exp_f32_e32 v1, v1
\tv_exp_f32_e32 v1, v1
\tv_exp_f32_e32 v1, v1
\ts_cbranch_scc0 .LBB0_4
\tglobal_store_short v1, v2, s[0:1]
\tscratch_store_dword off, v1, s32
\ts_endpgm
\ts_code_end
\t.section\t.rodata
\t.amdhsa_next_free_vgpr 40
; TotalNumVgprs: 44
\t.amdgpu_metadata
amdhsa.kernels:
  - .agpr_count:     4
    .private_segment_fixed_size: 16
    .sgpr_count:     20
    .sgpr_spill_count: 2
    .vgpr_count:     40
    .vgpr_spill_count: 3
\tv_not_code v0, v0
\t.end_amdgpu_metadata
"""


@pytest.fixture(scope="module")
def metrics():
    return measure(KERNEL, shared=1024, target=target("gfx950"), num_warps=4)


def test_whole_kernel(metrics):
    found = {name: n for name, n in dataclasses.asdict(metrics.mix).items() if n and name not in ("widths", "matrix")}
    assert found == {
        "insns": 28,  # the classes below without dpp, branch and ds_read, which lie inside others
        "mma": 1,
        "valu": 11,
        "dpp": 1,
        "salu": 6,  # s_load, s_mov, three branches, s_endpgm
        "branch": 3,
        "wait": 2,
        "barrier": 1,
        "ds": 2,
        "ds_read": 2,
        "lds_dma": 1,
        "load": 1,
        "store": 1,
        "atomic": 1,
        "scratch": 1,
    }
    assert metrics.mix.widths == {
        "load": {"128": 1},
        "store": {"16": 1},
        "lds_dma": {"128": 1},
        "ds": {"64": 1, "128": 1},
    }


def test_the_hottest_loop_is_the_one_with_matrix_instructions(metrics):
    assert metrics.loops == 3
    assert (metrics.loop.insns, metrics.loop.mma, metrics.loop.valu, metrics.loop.barrier) == (8, 1, 1, 1)
    assert metrics.loop.density == 1 / 8


def test_registers_and_memory(metrics):
    assert (metrics.vgpr, metrics.agpr, metrics.sgpr) == (44, 4, 20)
    assert (metrics.spill, metrics.sgpr_spill, metrics.scratch_bytes, metrics.lds_bytes) == (3, 2, 16, 1024)
    assert metrics.occupancy == 8


def test_json_is_flat_with_the_loop_apart(metrics):
    data = metrics.as_json()
    assert data["insns"] == 28 and data["vgpr"] == 44 and data["loop"]["insns"] == 8 and "mix" not in data


def test_a_kernel_without_loops_has_none():
    assert measure("\tv_add_u32 v0, v0, v0\n\ts_endpgm\n").loop is None


def test_loop_nesting():
    found = [(loop.depth, loop.innermost) for loop in find_loops(parse_instructions(KERNEL))]
    assert found == [(1, False), (2, True), (1, True)]


def test_a_forward_branch_is_no_loop():
    assert find_loops(parse_instructions("\ts_cbranch_scc1 .LBB0_1\n\ts_nop 0\n.LBB0_1:\n\ts_endpgm\n")) == ()


def test_a_block_behind_the_end_of_the_program_closes_no_loop():
    cold = "\ts_cbranch_scc1 .LBB0_8\n.LBB0_6:\n\ts_barrier\n\ts_endpgm\n.LBB0_8:\n\ts_cbranch_execnz .LBB0_6\n\ts_endpgm\n"
    assert find_loops(parse_instructions(cold)) == ()
    entered = cold.replace("\ts_barrier\n", "\ts_barrier\n\ts_cbranch_scc0 .LBB0_8\n")
    assert len(find_loops(parse_instructions(entered))) == 1


SKIPPING = """
\ts_branch .LBB0_4
.LBB0_2:
\tv_mov_b32 v4, v5
.LBB0_3:
\ts_add_u32 s0, s0, 1
\ts_cbranch_scc0 .LBB0_8
.LBB0_4:
\tv_mfma_f32_16x16x4_f32 v[0:3], v4, v5, v[0:3]
\ts_cbranch_scc1 .LBB0_3
\tv_mfma_f32_16x16x4_f32 v[0:3], v4, v5, v[0:3]
\ts_branch .LBB0_2
.LBB0_8:
\ts_endpgm
"""


def test_a_loop_that_skips_part_of_its_body_is_one_loop():
    """Its end stands before its header: the branches back to it close no loops of their own."""
    code = parse_instructions(SKIPPING)
    (loop,) = find_loops(code)
    assert loop.innermost and count(code[loop.first : loop.last + 1]).mma == 2


def test_a_loop_in_a_loop_that_skips_is_the_innermost():
    inner = ".LBB0_5:\n\tv_add_u32 v0, v0, v0\n\ts_cbranch_scc1 .LBB0_5\n"
    found = find_loops(parse_instructions(SKIPPING.replace("\ts_branch .LBB0_2", inner + "\ts_branch .LBB0_2")))
    assert [(loop.depth, loop.innermost) for loop in found] == [(1, False), (2, True)]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("v_wmma_f32_16x16x32_f16 v[0:7], v[8:15], v[16:23], v[0:7]", ("mma",)),
        ("ds_write_b64 v0, v[1:2]", ("ds", "ds_write")),
        ("ds_store_b128 v0, v[1:4]", ("ds", "ds_write")),
        ("ds_load_2addr_b32 v[0:1], v2 offset1:1", ("ds", "ds_read")),
        ("ds_bpermute_b32 v0, v1, v2", ("ds", "ds_other")),
        ("ds_add_rtn_f32 v0, v1, v2", ("ds", "ds_other")),
        ("global_load_async_to_lds_b128 v0, v[2:3], off", ("lds_dma",)),
        ("tensor_load_to_lds s[0:3], s[4:11]", ("lds_dma", "tdm")),
        ("tensor_store_from_lds s[0:3], s[4:11]", ("tdm",)),
        ("buffer_atomic_pk_add_bf16 v0, v1, s[0:3], 0 offen", ("atomic",)),
        ("s_barrier_signal -1", ("barrier",)),
        ("s_barrier_wait -1", ("salu",)),
        ("s_wait_loadcnt 0x0", ("wait",)),
        ("s_wait_alu 0xfffe", ("salu",)),
        ("v_permlane32_swap_b32 v0, v1", ("valu", "dpp")),
        ("v_mov_b32_dpp v13, v0 row_half_mirror row_mask:0xf bank_mask:0xf", ("valu", "dpp")),
        ("global_wb scope:SCOPE_SYS", ()),
        ("s_endpgm", ("salu",)),
    ],
    ids=lambda x: x.split()[0] if isinstance(x, str) else "",
)
def test_classes(text, expected):
    op, _, operands = text.partition(" ")
    assert classes(Instruction(op, " " + operands)) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("global_load_dwordx3 v[0:2], v3, s[0:1]", {"load": {"96": 1}}),
        ("global_load_b96 v[0:2], v3, s[0:1]", {"load": {"96": 1}}),
        ("global_load_ushort v0, v3, s[0:1]", {"load": {"16": 1}}),
        ("buffer_load_ubyte_d16_hi v0, v3, s[0:3], 0 offen", {"load": {"8": 1}}),
        ("global_load_d16_hi_b16 v0, v3, s[0:1]", {"load": {"16": 1}}),
        ("global_load_tr_b128 v[0:3], v3, s[0:1]", {"load": {"128": 1}}),
        ("buffer_store_byte v0, v3, s[0:3], 0 offen", {"store": {"8": 1}}),
        ("ds_read_u16_d16 v0, v1", {"ds": {"16": 1}}),
        ("ds_read2st64_b64 v[0:3], v1 offset1:1", {"ds": {"128": 1}}),
        ("ds_load_2addr_stride64_b32 v[0:1], v1 offset1:1", {"ds": {"64": 1}}),
        ("ds_read_b64_tr_b16 v[0:1], v1", {"ds": {"64": 1}}),
        ("ds_bpermute_b32 v0, v1, v2", {}),
        ("global_load_lds_dwordx4 v[0:1], off", {"lds_dma": {"128": 1}}),
        ("global_load_async_to_lds_b64 v0, v[2:3], off", {"lds_dma": {"64": 1}}),
        ("buffer_load_dword v1, s[4:7], 0 offen lds", {"lds_dma": {"32": 1}}),
        ("tensor_load_to_lds s[0:3], s[4:11]", {}),
    ],
    ids=lambda x: x.split()[0] if isinstance(x, str) else "",
)
def test_widths(text, expected):
    op, _, operands = text.partition(" ")
    assert count([Instruction(op, " " + operands)]).widths == expected
