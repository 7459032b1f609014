"""The emulator's process, with a stand-in for the emulator: order of waves and workgroups, faults, limits, other versions."""

import ctypes
import struct

import pytest

from emulator_stand_in import ADD, BARRIER, EMULATOR, END, JUMP, LACKING, STORE, WAIT, build_checkout, code
from gluonize.judge.device.code_object import Segment
from gluonize.judge.emulator import registers
from gluonize.judge.emulator.checkout import TRIED
from gluonize.judge.emulator.kernarg import Kernarg, Pointer
from gluonize.judge.emulator.request import Done, Run, Stopped
from gluonize.judge.emulator.session import Session

KERNARG_POINTER = 1 << 3  # kernel_code_properties


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    with Session(build_checkout(tmp_path_factory.mktemp("checkout"))) as session:
        yield session


def run(*instructions, tensors=(bytes(32),), programs=(0,), grid=(2, 1, 1), block=32, **changes):
    text = code(*instructions)
    fields = dict(
        target="gfx1100", segments=(Segment(64, text, len(text)),), entry=64, resource2=0, properties=KERNARG_POINTER,
        scratch=0, lds=0, kernarg=Kernarg(bytes(16), (Pointer(0, 0, 0),)), tensors=tensors, grid=grid, programs=programs,
        block=block, turns=False, seconds=20.0,
    )  # fmt: skip
    return Run(**(fields | changes))


def test_the_programs_that_are_asked_for_run_once_each(session):
    done = session.run(run((ADD, 3), END, programs=(0, 1)))
    assert done == Done((bytes([0, 0, 0, 2]) + bytes(28),), 4)


def test_a_tensor_that_nothing_changes_is_not_sent_back(session):
    done = session.run(run((ADD, 0), END, tensors=(bytes(8), bytes(100))))
    assert done.tensors == (b"\1" + bytes(7), None)


def test_waves_wait_for_each_other_at_a_barrier(session):
    done = session.run(run(STORE, STORE, BARRIER, STORE, END, block=96))
    assert done.tensors[0][1:10] == bytes(
        [0, 0, 1, 1, 2, 2, 0, 1, 2]
    ), "each wave as far as the barrier, then behind it"


def test_a_program_that_waits_for_another_ends_in_turns_alone(session):
    waiting = dict(programs=(0, 1), seconds=0.7)
    text = ((WAIT, 1), STORE, (ADD, 1), END)
    assert session.run(run(*text, **waiting)).kind == "out-of-time"
    assert isinstance(session.run(run(*text, **waiting | {"turns": True, "seconds": 20.0})), Done)


@pytest.mark.parametrize("size", [1, 16, 4096])
def test_the_last_byte_is_there_and_the_one_behind_is_not(session, size):
    tensors = (bytes(size - 1) + b"\7",)
    shifted = Kernarg(bytes(16), (Pointer(0, 0, size - 1),))
    done = session.run(run((ADD, 0), END, tensors=tensors, kernarg=shifted))
    assert done.tensors[0][-1] == 8
    aligned = -(-size // 16) * 16
    behind = Kernarg(bytes(16), (Pointer(0, 0, aligned),))
    stopped = session.run(run((ADD, 0), END, tensors=tensors, kernarg=behind, programs=(1,)))
    assert (stopped.kind, stopped.instruction) == ("fault", "add at offset 0x40 in program 1")
    assert "SIGSEGV" in stopped.why


def test_a_fault_costs_one_process(session):
    far = Kernarg(bytes(16), (Pointer(0, 0, -(1 << 31)),))
    assert session.run(run((ADD, 0), END, kernarg=far)).kind == "fault"
    assert isinstance(session.run(run((ADD, 0), END)), Done)


def test_an_instruction_that_it_lacks_is_named_by_its_words(session):
    stopped = session.run(run((ADD, 0), LACKING, END))
    assert (stopped.kind, stopped.why) == ("unknown-instruction", "no instruction 238")
    assert stopped.instruction.startswith("000000ee") and "offset 0x44" in stopped.instruction


def test_an_endless_loop_is_stopped(session):
    assert session.run(run((JUMP, 1), END, seconds=0.5)).kind == "out-of-time"


def test_a_jump_out_of_the_code_is_a_fault(session):
    stopped = session.run(run((JUMP, 60), END))
    assert stopped.kind == "fault" and "outside of its code" in stopped.why


@pytest.mark.parametrize("bit, what", [(0, "private segment buffer"), (5, "flat scratch"), (6, "private segment size")])
def test_a_register_that_is_not_filled_is_refused(session, bit, what):
    stopped = session.run(run(END, properties=KERNARG_POINTER | 1 << bit))
    assert stopped.kind == "registers" and what in stopped.why


def test_registers_are_filled_in_the_order_of_their_bits():
    dispatch, queue, identity = 1 << 1, 1 << 2, 1 << 4
    asked = run(END, properties=KERNARG_POINTER | dispatch | queue | identity, grid=(5, 6, 7), block=64, lds=512)
    with registers.prepared(asked, [0x1234]) as prepared:
        words = prepared.user_data
        packet, kernarg = (low | high << 32 for low, high in (words[0:2], words[4:6]))
        sizes = struct.unpack_from("<3H2x3I2I", ctypes.string_at(packet, 64), 4)
        assert len(words) == 8 and words[6:] == [0, 0]
        assert kernarg == prepared.kernarg
        assert ctypes.c_uint64.from_address(kernarg).value == 0x1234
        assert sizes == (64, 1, 1, 320, 6, 7, 0, 512), "lanes of a workgroup, of the grid; bytes of scratch, of LDS"
        assert ctypes.c_uint64.from_address(packet + 40).value == kernarg


@pytest.mark.parametrize(
    "old, new, kind, why",
    [
        ("_BARRIER_OPS", "BARRIERS", "interface", "it has no _BARRIER_OPS"),
        ("def _decode_at(pc, arch)", "def _decode_at(pc, arch, more=0)", "interface", "takes (pc, arch, more)"),
        ("import ctypes\n", "import ctypes_of_another_version\n", "start", "No module named"),
    ],
)
def test_another_version_is_refused_by_name(tmp_path, old, new, kind, why):
    assert old in EMULATOR
    with Session(build_checkout(tmp_path, EMULATOR.replace(old, new, 1 if "import" in old else -1))) as session:
        for _ in range(2):
            stopped = session.run(run(END))
            assert stopped.kind == kind and why in stopped.why
            assert kind != "interface" or TRIED[:12] in stopped.why


def test_a_process_that_leaves_by_itself_is_a_crash(tmp_path):
    leaving = EMULATOR.replace("raise RuntimeError", "raise SystemExit")
    with Session(build_checkout(tmp_path, leaving)) as session:
        stopped = session.run(run(LACKING))
    assert isinstance(stopped, Stopped) and stopped.kind == "crash" and "status 1" in stopped.why
