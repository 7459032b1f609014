"""`gluonize validate --emulator`, without an emulator: arguments, tensors, verdicts, refusals, exit status."""

import json
import struct
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gluonize.diagnostics import TranslationError
from gluonize.judge.device import code_object
from gluonize.judge.device.code_object import KernelObject
from gluonize.judge.device.refusal import Refused
from gluonize.judge.emulator.checkout import NEEDED, TRIED, VARIABLE, check_target, find_checkout
from gluonize.judge.emulator.kernarg import Pointer, pack
from gluonize.judge.emulator.observer import EmulatedLaunch
from gluonize.judge.emulator.request import Done, Stopped
from gluonize.judge.emulator.sides import UNREAD, end_of, start_of
from gluonize.judge.emulator.verdict import SideResult, judge
from gluonize.judge.inputs.inputs import Inputs, Tensor
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.machine.memory.sparse import Pages
from gluonize.judge.verdict.compare import TensorComparison
from gluonize.judge.verdict.pair import SourceRun
from gluonize.product.cli.edge import run
from gluonize.product.cli.running import validate

from emulator_stand_in import build_checkout


def kernel(*arguments, size=64):
    listed = tuple({".offset": at, ".size": bytes_, ".value_kind": kind} for at, bytes_, kind in arguments)
    return KernelObject("k", "gfx942", 64, 256, 0, 0, size, size, listed)


def test_arguments_go_where_the_metadata_says():
    found = kernel((0, 8, "global_buffer"), (8, 4, "by_value"), (16, 8, "global_buffer"), (24, 8, "global_buffer"))
    arguments = [
        {"kind": "tensor", "tensor": "y", "offset": 4, "size": 8},
        {"kind": "scalar", "bytes": "fbffffff", "size": 4},
    ]
    packed = pack(found, arguments, ["x", "y"], (1, 1, 1), 64, 0)
    assert packed.pointers == (Pointer(0, 1, 4),)
    assert packed.data[:64] == bytes(8) + struct.pack("<i", -5) + bytes(52), "scratch pointers stay null"
    assert len(packed.data) > 64


def test_hidden_arguments_say_how_large_the_launch_is():
    names = ["hidden_block_count_x", "hidden_block_count_z", "hidden_group_size_x", "hidden_group_size_y"]
    names += ["hidden_grid_dims", "hidden_dynamic_lds_size", "hidden_hostcall_buffer"]
    found = kernel(*((8 * i, 8, name) for i, name in enumerate(names)))
    data = pack(found, [], [], (7, 8, 9), 256, 1024).data
    assert struct.unpack_from("<7Q", data) == (7, 9, 256, 1, 3, 1024, 0)


@pytest.fixture(scope="module")
def built():
    with WorkerPool(1) as pool:
        return pool.call("gluonize.judge.device.bundles.jobs:compile_poison", "hsaco", "gfx942")


def test_what_is_loaded_has_the_first_instruction(built):
    found = code_object.read(built["code"], built["symbol"])
    holds = [s for s in code_object.segments(built["code"]) if s.address <= found.entry < s.address + s.size]
    assert len(holds) == 1 and found.entry % 256 == 0
    s_endpgm = struct.pack("<I", 0xBF810000)
    assert s_endpgm in holds[0].data[found.entry - holds[0].address :]
    assert found.properties & 1 << 3, "the kernarg pointer"


def test_relocations_are_refused(built):
    code = bytearray(built["code"])
    (start,) = struct.unpack_from("<Q", code, 40)
    struct.pack_into("<I", code, start + 64 + 4, code_object.SHT_RELA)  # the type of section 1
    with pytest.raises(Refused) as caught:
        code_object.segments(bytes(code))
    assert "relocations" in caught.value.why


def source_run(data, changed=(), seen=(), element="f32"):
    """A run of the source on one tensor of which it changed and read some elements."""
    tensor = Tensor("x", element, np.array(data))
    memory = Memory(recording=True)
    buffer = memory.add("x", element, tensor.data)
    buffer.track(tensor.data.itemsize)
    buffer.changed[list(changed)] = True
    buffer.seen[list(seen)] = True
    inputs, grid = Inputs({"x": tensor}), (1, 1, 1)
    return SourceRun(inputs, grid, (0,), (0,), grid, inputs, False, memory, 1, "f32")


def test_what_the_source_never_reads_is_poisoned():
    start = start_of(source_run(np.array([1, 2, 3, 4], np.int32), changed=(1, 2), seen=(0, 2), element="i32"))
    poison = np.frombuffer(bytes([UNREAD] * 4), np.int32)[0]
    assert list(start.buffers[0].data.view(np.int32)) == [1, poison, 3, 4], "written and read, or neither: as it was"
    floats = start_of(source_run(np.ones(3, np.float32), changed=(1,), seen=(0,)))
    assert list(np.isnan(floats.buffers[0].data.view(np.float32))) == [False, True, True]


def test_bytes_that_differ_are_those_that_were_written():
    start = start_of(source_run(np.array([1, 2], np.int32), element="i32"))
    after = np.array([1, 5], np.int32).tobytes()
    assert list(end_of(start, Done((after,), 1)).buffers[0].changed) == [False] * 4 + [True] + [False] * 3
    assert not end_of(start, Done((None,), 1)).buffers[0].changed.any()


def tensors(wrong):
    return (TensorComparison("y", 8, 8 - wrong, wrong, 0, float(wrong), 1.0, 3 if wrong else -1, 1.0, 2.0),)


RIGHT, WRONG = SideResult(tensors(0)), SideResult(tensors(2))
FAULT = SideResult(stopped=Stopped("fault", "SIGSEGV", "buffer_load_dword at offset 0x10 in program 1"))
UNKNOWN = SideResult(stopped=Stopped("unknown-instruction", "unimplemented", "v_new"))
LATE = SideResult(stopped=Stopped("out-of-time", "not in time"))


@pytest.mark.parametrize(
    "source, translation, status, says",
    [
        (RIGHT, RIGHT, "validated", ""),
        (RIGHT, WRONG, "mismatch", "2 of 8 elements differ, first at element 3"),
        (RIGHT, FAULT, "mismatch", "buffer_load_dword at offset 0x10"),
        (WRONG, RIGHT, "validated", ""),
        (FAULT, RIGHT, "validated", ""),
        (WRONG, WRONG, "not_runnable", "Triton's own compile of the source differs"),
        (FAULT, FAULT, "not_runnable", "Triton's own compile of the source differs"),
        (RIGHT, UNKNOWN, "not_runnable", "unimplemented (v_new)"),
        (UNKNOWN, WRONG, "not_runnable", "unimplemented (v_new)"),
        (RIGHT, LATE, "not_runnable", "not in time"),
        (LATE, WRONG, "not_runnable", "not in time"),
    ],
)
def test_verdict_on_one_set_of_inputs(source, translation, status, says):
    found = judge(source, translation, "n = 5")
    assert found.status == status and says in found.reason
    assert bool(found.notes) == (status == "validated" and not source.agrees)
    assert found.instruction == ("v_new" if UNKNOWN in (source, translation) else "")


class Sessions:
    """Answers runs from a list, as the emulator's process would."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def run(self, request):
        return self.answers.pop(0)


class Sides:
    """A code object of which nothing is asked."""

    def __init__(self):
        self.module = SimpleNamespace(has=lambda *names: False)

    def request(self, run, start, seconds):
        return None


def observed(*answers, runs=2, seconds=60.0):
    launch = EmulatedLaunch(Sessions(*answers), Sides(), Sides(), seconds)
    for _ in range(runs):
        launch.observe(source_run(np.array([1, 2], np.int32), element="i32"))
    return launch.verdict()


def test_the_first_inputs_that_are_wrong_decide():
    wrong = Done((np.array([9, 2], np.int32).tobytes(),), 1)
    right = Done((None,), 1)
    assert observed(right, right, right, right).status == "validated"
    found = observed(right, right, right, wrong, runs=3)
    assert (found.status, found.inputs) == ("mismatch", 2)
    assert "element 0: 1.0 expected, 9.0 found" in found.reason


def test_inputs_that_say_nothing_do_not_stop_the_others():
    late, right = Stopped("out-of-time", "not in time"), Done((None,), 1)
    wrong = Done((np.array([9, 2], np.int32).tobytes(),), 1)
    assert observed(right, late, right, wrong).status == "mismatch"
    assert observed(right, late, right, right).status == "not_runnable"
    assert (
        observed(right, Stopped("unknown-instruction", "lacking", "v_new"), runs=3).inputs == 1
    ), "no inputs change that"


def test_a_variant_on_which_the_source_differs_too_is_a_note():
    right, wrong = Done((None,), 1), Done((np.array([9, 2], np.int32).tobytes(),), 1)
    launch = EmulatedLaunch(Sessions(right, right, wrong, wrong), Sides(), Sides(), 60.0)
    plain = source_run(np.array([1, 2], np.int32), element="i32")
    launch.observe(plain)
    launch.observe(replace(plain, inputs=replace(plain.inputs, variant="n = 5")))
    found = launch.verdict()
    assert found.status == "validated" and "not compared with n = 5" in found.notes[0]
    assert observed(wrong, wrong, right, right).status == "not_runnable", "of the launch itself it is no note"


def test_overlapping_views_are_left_out():
    data = np.array([1, 2], np.int32)
    launch = EmulatedLaunch(Sessions(), Sides(), Sides(), 60.0)
    views = {name: Tensor(name, "i32", data) for name in ("x", "y")}
    launch.observe(replace(source_run(data, element="i32"), inputs=Inputs(views)))
    found = launch.verdict()
    assert found.inputs == 0 and "overlap" in found.reason


def test_inputs_for_which_there_was_no_time_are_counted():
    right = Done((None,), 1)
    found = observed(right, right, runs=3, seconds=0.0)
    assert found.inputs == 1 and found.notes == ("2 more sets of inputs were not run: the time was over",)


def test_inputs_that_only_the_reference_machine_can_run_are_passed_over():
    """Storage of gibibytes, and tensors that overlap, of which waves would see what others stored."""
    run = source_run(np.array([1, 2], np.int32), element="i32")
    (x,) = run.inputs.tensors()
    far = Inputs({"x": replace(x, pages=Pages(1 << 32, x.data))})
    overlapping = Inputs({"x": x, "y": replace(x, name="y", offset=1)})
    for inputs, why in ((far, "take gibibytes"), (overlapping, "overlap in one storage")):
        launch = EmulatedLaunch(Sessions(), Sides(), Sides(), 60.0)
        launch.observe(replace(run, inputs=inputs))
        assert why in launch.verdict().reason


def test_no_inputs_are_no_validation():
    assert observed(runs=0).status == "not_runnable"


def test_where_the_emulator_is_looked_for(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)

    def said():
        with pytest.raises(TranslationError) as caught:
            find_checkout()
        (found,) = caught.value.diagnostics
        assert found.code == "no-emulator" and TRIED[:12] in found.help
        return found.why

    assert said() == f"{VARIABLE} is not set"
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    assert "is no folder" in said()
    build_checkout(tmp_path)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert find_checkout() == str(tmp_path)
    for name in NEEDED:
        (tmp_path / name).rename(tmp_path / "gone")
        assert said().endswith(f"has no {name}")
        (tmp_path / "gone").rename(tmp_path / name)


def test_an_architecture_that_it_does_not_know_is_refused():
    check_target("gfx1201")
    with pytest.raises(TranslationError) as caught:
        check_target("gfx1250")
    assert caught.value.diagnostics[0].code == "emulator-target"


@pytest.fixture
def words(tmp_path, monkeypatch):
    """A command line of two files that are read by nothing."""
    monkeypatch.chdir(tmp_path)
    spec = {"id": "k/one", "kernel": "k", "signature": {"x": "*fp32"}, "constexprs": {}, "options": {}}
    (tmp_path / "l.json").write_text(json.dumps([spec]))
    (tmp_path / "k.py").write_text("")
    (tmp_path / "out.py").write_text("")
    monkeypatch.setenv(VARIABLE, build_checkout(tmp_path / "checkout"))
    return ["validate", "k.py", "out.py", "-l", "l.json", "--emulator", "-t"]


def test_command_refuses_what_it_cannot_do(words, monkeypatch, capsys):
    assert run([*words, "gfx942,gfx1250"]) == 2
    assert "no emulator for gfx1250" in capsys.readouterr().err
    assert run([*words, "gfx942", "--device", "auto"]) == 2
    assert "--emulator and --device" in capsys.readouterr().err
    monkeypatch.delenv(VARIABLE)
    assert run([*words, "gfx942"]) == 2
    assert f"{VARIABLE} is not set" in capsys.readouterr().err


@pytest.mark.parametrize(
    "machine, emulator, status, exit_status",
    [
        ("validated", "validated", "validated", 0),
        ("validated", "mismatch", "mismatch", 1),
        ("validated", "not_runnable", "not_runnable", 1),
        ("not_runnable", "mismatch", "mismatch", 1),
        ("not_runnable", "validated", "not_runnable", 1),
        ("mismatch", "validated", "mismatch", 1),
    ],
)
def test_the_worse_of_both_findings_decides(words, monkeypatch, capsys, machine, emulator, status, exit_status):
    monkeypatch.setattr(validate, "EMULATED", "cli_stand_in:validate_emulated")
    monkeypatch.setenv("STAND_IN_FINDINGS", f"{machine} {emulator}")
    assert run([*words, "gfx942", "--json", "out.json"]) == exit_status
    printed = capsys.readouterr().out
    assert f"machine code in the emulator: {emulator}, 3 sets of inputs" in printed
    (result,) = json.loads(open("out.json").read())["results"]
    assert (result["status"], result["validation"]["emulator"]["status"]) == (status, emulator)
