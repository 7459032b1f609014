"""Relief of registers: what it does to a text, what is tried and what is kept, on made-up metrics; one kernel for real."""

from __future__ import annotations

import ast
import json
import re
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from translator.cli.edge import run
from translator.diagnostics import Diagnostic, TranslationError
from translator.lowering.compile import Lowered
from translator.lowering.metrics import InstructionMix, KernelMetrics
from translator.optimize.relief import (
    BARRIER,
    WHY,
    Relief,
    parse_relief,
    places,
    relieved,
    statements,
    with_late_scalars,
)
from translator.optimize.relieve import Compared, relieve
from translator.optimize.tuning import Tuning
from translator.project.provenance import parse_provenance
from translator.request import TranslateRequest, TranslateResult
from translator.source.launch_spec import LaunchSpec

KERNEL = '''\
def kernel(x, y, out, T, H: gl.constexpr):
    """What it does."""
    gl.static_assert(gl.num_warps() == 4, "four warps")
    load: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])

    i = gl.program_id(0)
    # Where the program's rows are.
    x += i * T
    y += i * T
    offs = gl.arange(0, 64, layout=load)
    a = cdna3.buffer_load(x, offs)
    for k in range(0, T):
        acc = cdna3.mfma(a, a, acc)
        i2 = k
    b = cdna3.buffer_load(y, offs)
    cdna3.buffer_store(a + b, out, offs)
'''


def test_statements_that_make_no_instruction_have_no_number():
    texts = [ast.unparse(s).splitlines()[0] for s in statements(KERNEL)]
    assert texts[:2] == ["i = gl.program_id(0)", "x += i * T"]
    assert texts[5:8] == ["for k in range(0, T):", "acc = cdna3.mfma(a, a, acc)", "i2 = k"]
    assert len(texts) == 10


def test_barriers_are_tried_at_what_takes_registers_and_at_the_ends():
    every = list(statements(KERNEL))
    tried = [ast.unparse(every[n]) for n in places(KERNEL)]
    assert tried[0] == "i = gl.program_id(0)" and "i2 = k" in tried
    assert not any(text.startswith(("for", "x +=")) for text in tried)
    assert sum("buffer_load" in text for text in tried) == 2 and sum("mfma" in text for text in tried) == 1


def test_late_scalars_stand_where_they_are_first_used():
    lines = with_late_scalars(KERNEL).splitlines()
    assert lines.index("    x += i * T") == lines.index("    a = cdna3.buffer_load(x, offs)") - 1
    assert lines.index("    y += i * T") == lines.index("    b = cdna3.buffer_load(y, offs)") - 1
    assert sorted(lines) == sorted(KERNEL.splitlines())


@pytest.mark.parametrize(
    "between",
    ["i = i + 1", "for T in range(3):\n        pass", "x = out", "y.store(x)"],
    ids=["operand", "operand in a loop", "same name", "use"],
)
def test_a_scalar_does_not_move_over_what_changes_or_uses_its_names(between: str):
    text = f"def kernel(x, y, i, T, out):\n    x += i * T\n    {between}\n    z = i\n    gl.store(x, z)\n"
    lines = with_late_scalars(text).splitlines()
    assert lines[1:3] == ["    x += i * T", f"    {between}".splitlines()[0]]


def test_what_follows_from_another_scalar_moves_behind_it():
    text = "def kernel(x, i, T):\n    a = i * T\n    b = a + T\n    f(i)\n    gl.store(x, b)\n"
    assert with_late_scalars(text).splitlines()[1:] == [
        "    f(i)",
        "    a = i * T",
        "    b = a + T",
        "    gl.store(x, b)",
    ]


def test_a_barrier_stands_before_its_statement_in_its_block():
    text = relieved(KERNEL, Relief(barriers=(6,)), [WHY, BARRIER])
    assert f"        {WHY}\n        {BARRIER}\n        acc = cdna3.mfma(a, a, acc)\n" in text
    assert text.replace(f"        {WHY}\n        {BARRIER}\n", "") == KERNEL


def test_what_is_put_before_a_statement_stands_above_its_comment():
    text = "def kernel(x, y):\n    x += y\n    f(y)\n    # Loaded.\n    g(x)\n"
    late = relieved(text, Relief(True, (2,)), [BARRIER])
    assert late.splitlines()[2:] == ["    x += y", f"    {BARRIER}", "    # Loaded.", "    g(x)"]


def test_numbers_count_after_late_scalars_and_those_past_the_end_are_left_out():
    late = relieved(KERNEL, Relief(late=True, barriers=(3, 99)), [WHY, BARRIER])
    assert late.count(BARRIER) == 1 and f"{BARRIER}\n    a = cdna3.buffer_load(x, offs)\n" in late


@pytest.mark.parametrize("relief", [Relief(), Relief(late=True), Relief(barriers=(3, 40)), Relief(True, (0,))])
def test_words_are_read_back(relief: Relief):
    assert parse_relief(relief.words()) == relief


def test_relief_is_no_other_way_to_write_loops():
    assert Tuning(relief=Relief(late=True)).is_parity and Tuning(num_buffers=3, relief=Relief(late=True)).as_triton
    assert not Tuning(num_buffers=3).is_parity and not Tuning(unroll=True).as_triton


MIX = InstructionMix(insns=1000, mma=16, load=8, barrier=2)
METRICS = KernelMetrics(MIX, 200, 0, 100, 0, 0, 0, 16384, 1, MIX, 2)
SPEC = LaunchSpec(id="kernel", kernel="kernel", source="kernel.py")
MODULE = f"from triton.experimental import gluon\n\n\n@gluon.jit\n{KERNEL}"


class StandIn:
    """Compiles nothing: `measure` (text) -> metrics; what was compiled is in `texts`."""

    def __init__(self, measure):
        self.measure, self.texts = measure, []

    def call(self, function: str, request: TranslateRequest, what: str = "") -> TranslateResult:
        return TranslateResult("translated", MODULE)

    def submit(self, function: str, path: str, *_, what: str = "") -> Future:
        text, future = Path(path).read_text(), Future()
        self.texts.append(text)
        found = self.measure(text)
        if isinstance(found, KernelMetrics):
            future.set_result(Lowered("kernel", "gfx942", "gluon", "kernel", 4, 0, found, 0.0))
        else:
            future.set_exception(found)
        return future


def relief_found(measure, triton: KernelMetrics = METRICS) -> Relief:
    pool = StandIn(measure)
    request = TranslateRequest("kernel.py", "gfx942", launches=(SPEC,))
    found = relieve(request, [Compared(SPEC, measure(MODULE), triton)], pool)
    relief_found.texts = pool.texts
    return found.tuning("kernel").relief


def following(text: str) -> list[str]:
    """The statements behind barriers."""
    return re.findall(rf"{re.escape(BARRIER)}\n +(.*)", text)


def spilling(n: int) -> KernelMetrics:
    return replace(METRICS, sgpr_spill=n)


def test_nothing_is_tried_where_nothing_is_worse():
    assert relief_found(lambda _: METRICS) == Relief() and not relief_found.texts


def test_kernels_that_take_long_to_compile_are_left_alone():
    large = replace(METRICS, mix=replace(MIX, insns=20_001))
    assert relief_found(lambda _: replace(large, sgpr_spill=4), large) == Relief() and not relief_found.texts


def test_what_spills_least_is_kept():
    relief = relief_found(
        lambda text: spilling(9 - 4 * any("mfma" in s for s in following(text)) - 2 * ("late" in text))
    )
    every = list(statements(KERNEL))
    assert [ast.unparse(every[n]) for n in relief.barriers] == ["acc = cdna3.mfma(a, a, acc)"]


def test_a_second_barrier_joins_the_first_and_no_more_are_tried_once_it_is_enough():
    def measure(text: str) -> KernelMetrics:
        behind = " ".join(following(text))
        return spilling(5 - 3 * ("mfma" in behind) - 2 * ("buffer_load(y" in behind))

    relief = relief_found(measure)
    assert len(relief.barriers) == 2 and not relief.late
    assert not any(text.count(BARRIER) > 2 for text in relief_found.texts)


def test_a_barrier_without_late_scalars_may_save_more_than_with_them():
    def measure(text: str) -> KernelMetrics:
        late = "y += i * T\n    b = cdna3" in text.replace(f"{WHY}\n    {BARRIER}\n    ", "")
        mfma = "mfma" in " ".join(following(text))
        return spilling(6 if late else 8 - 7 * mfma)

    assert relief_found(measure).late is False and relief_found(measure).barriers


def test_late_scalars_alone_are_enough():
    relief = relief_found(
        lambda text: spilling(0 if "buffer_load(x, offs)\n    for" not in text or "y += i * T\n    b" in text else 4)
    )
    assert relief == Relief(late=True) and len(relief_found.texts) == 1


@pytest.mark.parametrize(
    "cost",
    [
        {"spill": 1},
        {"occupancy": 1},
        {"mix": replace(MIX, insns=1051)},
        {"loop": replace(MIX, insns=1021)},
        {"mix": replace(MIX, barrier=3), "loop": replace(MIX, barrier=3)},
    ],
    ids=["spills", "occupancy", "kernel", "loop", "barriers"],
)
def test_relief_must_not_cost_more_than_it_is_worth(cost: dict):
    assert relief_found(lambda text: replace(METRICS, **cost) if following(text) else spilling(4)) == Relief()


def test_a_trial_that_does_not_compile_is_passed_over():
    error = TranslationError(Diagnostic("compiler-error", "no"))
    measure = lambda text: (
        error if "mfma" in " ".join(following(text)) else spilling(3 if following(text) else 4)
    )  # noqa: E731
    assert relief_found(measure).barriers and "mfma" not in ast.unparse(
        list(statements(KERNEL))[relief_found(measure).barriers[0]]
    )


def test_a_loop_that_is_too_long_may_be_mended_too():
    long = replace(METRICS, loop=replace(MIX, insns=1150))
    assert relief_found(lambda text: METRICS if following(text) else long).barriers


def test_a_request_for_anything_but_parity_is_left_alone():
    pool = StandIn(lambda _: METRICS)
    launches = [Compared(SPEC, spilling(4), METRICS)]
    for more in ({"optimize": "aggressive"}, {"strategy": "ping-pong"}, {"tunings": (("kernel", Tuning()),)}):
        request = TranslateRequest("kernel.py", "gfx942", launches=(SPEC,), **more)
        assert relieve(request, launches, pool) == request and not pool.texts


SOURCE = """\
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x * 2, mask=offsets < n)
"""
LAUNCH = {
    "id": "scale",
    "kernel": "scale_kernel",
    "signature": {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"},
    "constexprs": {"BLOCK": 1024},
    "attrs": {"x_ptr": "DS", "y_ptr": "DS", "n": "D"},
}
OUT = Path("scale_gfx942.py")


@pytest.fixture
def relieved_file(tmp_path, monkeypatch):
    """A file whose kernel got a barrier before its last statement, as if that had been found to help."""

    def found(request: TranslateRequest, launches, pool) -> TranslateRequest:
        assert [x.spec.kernel for x in launches] == ["scale_kernel"]
        return replace(request, tunings=(("scale_kernel", Tuning(relief=Relief(barriers=(2,)))),))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GLUONIZE_CACHE_DIR", str(tmp_path / ".cache"))
    monkeypatch.setattr("translator.cli.translate_run.relieve", found)
    Path("scale.py").write_text(SOURCE)
    Path("l.json").write_text(json.dumps({"version": 1, "launches": [LAUNCH]}))
    assert run(["translate", "scale.py", "-t", "gfx942", "-l", "l.json", "-q", "--no-validate"]) == 0
    return OUT


@pytest.mark.compile
def test_a_file_says_what_relieved_it(relieved_file):
    text = relieved_file.read_text()
    assert f"    {WHY}\n    {BARRIER}\n    cdna3.buffer_store(" in text
    assert "from triton.experimental.gluon.language.amd import hint\n" in text
    assert parse_provenance(text).relief == (("scale_kernel", "2"),)


@pytest.mark.compile
def test_check_makes_a_relieved_file_again_as_it_was(relieved_file, monkeypatch, capsys):
    monkeypatch.setenv("GLUONIZE_CACHE_DIR", "elsewhere")
    relieved_file.write_text(relieved_file.read_text().replace("x * 2", "x + x"))
    capsys.readouterr()
    assert run(["check"]) == 1
    out = capsys.readouterr().out
    changed = [line for line in out.splitlines() if line.startswith(("+ ", "- "))]
    assert "it was edited by hand" in out and len(changed) == 2 and "x * 2" in changed[1]


@pytest.mark.compile
def test_an_update_finds_relief_anew(relieved_file, monkeypatch):
    monkeypatch.setattr("translator.cli.translate_run.relieve", lambda request, launches, pool: request)
    Path("scale.py").write_text(SOURCE.replace("x * 2", "x * 3"))
    assert run(["update", "-q"]) == 0
    assert BARRIER not in relieved_file.read_text() and parse_provenance(relieved_file.read_text()).relief == ()


@pytest.mark.compile
def test_a_merge_keeps_the_relief(relieved_file):
    relieved_file.write_text(relieved_file.read_text() + "\n\nMINE = 1\n")
    Path("scale.py").write_text(SOURCE.replace("x * 2", "x * 3"))
    assert run(["update", "-q"]) == 0
    text = relieved_file.read_text()
    assert BARRIER in text and "MINE = 1" in text and "x * 3" in text


@pytest.mark.compile
def test_without_parity_nothing_is_tried(relieved_file):
    assert run(["translate", "scale.py", "-t", "gfx942", "-l", "l.json", "-o", "plain.py", "-q", "--no-parity"]) == 0
    assert BARRIER not in Path("plain.py").read_text()
