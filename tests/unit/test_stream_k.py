"""Programs that share the steps of tiles (`--choose programs=stream-k`)."""

from __future__ import annotations

import ast
import functools
import sys
import tempfile
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gluonize import translation
from gluonize.decide.choices.chosen import Choices, choices_of
from gluonize.facts.programs.shared_steps import SUMMED
from gluonize.judge.cycles.job import lower_and_walk
from gluonize.judge.cycles.launch.estimate import Shares, shares
from gluonize.judge.device.bundles.build import BundleRequest, build_bundle
from gluonize.judge.device.bundles.jobs import compile_native
from gluonize.judge.device.refusal import Refused
from gluonize.judge.emulator.observer import EmulatedLaunch
from gluonize.judge.emulator.request import Stopped
from gluonize.judge.emulator.sides import Side
from gluonize.judge.inputs.chosen_programs import IN_ORDER, LAST_FIRST, Programs
from gluonize.judge.lower.jobs import lower_file
from gluonize.judge.machine.hazards import Hazard
from gluonize.judge.machine.memory.handed_over import HandedOver
from gluonize.judge.machine.turns import ALTERNATING, BACKWARD, DRAWN, FORWARD
from gluonize.judge.verdict import pair, validate_launch
from gluonize.judge.verdict.cut_tiles import Dealing, dealings
from gluonize.judge.verdict.pair import SourceRun
from gluonize.judge.verdict.run import validate_job
from gluonize.output.programs import stream_k
from gluonize.read.spec.launch import LaunchSpec, read_launches
from gluonize.request import TranslateRequest
from gluonize.rules.targets import TARGETS
from gluonize.rules.timing import TIMINGS
from gluonize.search.candidates import ROWS
from gluonize.trace.model.parse import parse_module
from gluonize.translation import translate_kernel
from slow_rows import slow_but
from translation_of import dedent, launch, tensor, translate, validated
from triton.compiler.errors import CompilationError

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr):
        pid = tl.program_id(0)
        rows = pid // tl.cdiv(N, BLOCK) * BLOCK + tl.arange(0, BLOCK)
        columns = pid % tl.cdiv(N, BLOCK) * BLOCK + tl.arange(0, BLOCK)
        inner = tl.arange(0, BLOCK)
        a_ptrs = a_ptr + rows[:, None] * K + inner[None, :]
        b_ptrs = b_ptr + inner[:, None] * N + columns[None, :]
        acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for k in range(0, tl.cdiv(K, BLOCK)):
            a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (inner[None, :] < K - k * BLOCK), other=0.0)
            b = tl.load(b_ptrs, mask=(inner[:, None] < K - k * BLOCK) & (columns[None, :] < N), other=0.0)
            acc = tl.dot(a, b, acc)
            a_ptrs += BLOCK
            b_ptrs += BLOCK * N
        c_ptrs = c_ptr + rows[:, None] * N + columns[None, :]
        tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))
    """)
STREAM_K = choices_of(programs="stream-k")
BLOCK, M, N, K = 16, 44, 32, 70
TILES, STEPS = 6, 5


def spec_of(**sizes: int) -> LaunchSpec:
    m, n, k = (sizes.get(name, size) for name, size in (("M", M), ("N", N), ("K", K)))
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
    values = {"a_ptr": tensor(m, k), "b_ptr": tensor(k, n), "c_ptr": tensor(m, n), "M": m, "N": n, "K": k}
    for name, dtype in {"a_ptr": "float16", "b_ptr": "float16", "c_ptr": "float32"}.items():
        values[name]["tensor"]["dtype"] = dtype
    spec = launch("product", signature, {"BLOCK": BLOCK}, warps=1, values=values)
    return replace(spec, grid=(-(-m // BLOCK) * -(-n // BLOCK),))


def chosen(choices: Choices = STREAM_K, kernel: str = "product") -> dict:
    return {"chosen": ((kernel, choices),)}


@functools.cache
def text_of(target: str = "gfx950", standalone: bool = False) -> str:
    """The translation of SOURCE, where nothing of the translator is changed."""
    with tempfile.TemporaryDirectory() as folder:
        return translate(Path(folder), SOURCE, spec_of(), target=target, standalone=standalone, **chosen()).text


def written(folder: Path) -> None:
    """SOURCE and its translation, as `judged` takes them."""
    (folder / "source.py").write_text(SOURCE)
    (folder / "output.py").write_text(text_of())


def judged(folder: Path, spec: LaunchSpec, target: str = "gfx950", variants: bool = False) -> dict:
    return validate_launch(str(folder / "source.py"), str(folder / "output.py"), spec, target, variants=variants)


def dealt(monkeypatch, *ways: Dealing) -> None:
    """Have translations run in these ways alone."""
    monkeypatch.setattr(pair, "dealings", lambda *given: ways)


@pytest.mark.compile
@pytest.mark.parametrize("target", slow_but(["gfx950", "gfx942", "gfx1201"]))
def test_programs_share_the_steps_of_all_tiles(target: str, tmp_path: Path):
    made = text_of(target)
    (tmp_path / "source.py").write_text(SOURCE)
    (tmp_path / "output.py").write_text(made)
    answer = judged(tmp_path, spec_of(), target)
    assert answer["status"] == "validated", answer
    assert "for k in range(begin, stop):" in made and 'sem="release"' in made and 'sem="acquire"' in made
    # What the next program waits for is done at the beginning, what waits for another one at the end.
    assert "tiles) - 1, first_tile - 1, -1):" in made
    assert f"_run_stream_k_product(run, programs_per_unit=1, elements={BLOCK * BLOCK}" in made


@pytest.mark.slow
@pytest.mark.compile
def test_tabs_and_lines_that_begin_left_of_the_block(tmp_path: Path):
    source = SOURCE.replace("    pid =", "# the number\n    pid =", 1).replace("    for k", "# the loop\n    for k")
    source = source.replace("            acc = ", "#        acc = 0\n            acc = ").replace(
        "    c_ptrs = c_ptr +", "# behind\n    c_ptrs = c_ptr\\\n+"
    )
    made = validated(tmp_path, source.replace("    ", "\t"), spec_of(), "gfx950", **chosen())
    assert "# behind\n" in made and "for k in range(begin, stop):" in made


@pytest.mark.compile
@pytest.mark.slow
def test_any_number_of_programs_does_it(tmp_path: Path, monkeypatch):
    """Steps are cut anywhere, also so that several programs have nothing but steps between the first and the last of a tile; there may be more
    programs than steps."""
    written(tmp_path)
    counts = [1, 2, 3, 4, 5, 7, 11, 13, 17, 23, 29, 30, 31, 40]
    dealt(monkeypatch, *(Dealing(n, order) for n in counts for order in (FORWARD, BACKWARD, ALTERNATING, DRAWN)))
    assert judged(tmp_path, spec_of())["status"] == "validated"


@pytest.mark.compile
@pytest.mark.parametrize("sizes", slow_but([{"M": 16, "N": 16}, {"K": 16}, {"K": 8}, {"M": 16, "K": 200}]))
def test_few_tiles_and_few_steps(sizes: dict, tmp_path: Path, monkeypatch):
    text = translate(tmp_path, SOURCE, spec_of(**sizes), target="gfx950", **chosen()).text
    (tmp_path / "output.py").write_text(text)
    dealt(monkeypatch, *(Dealing(n, BACKWARD) for n in (1, 2, 5, 9, 20)))
    assert judged(tmp_path, spec_of(**sizes))["status"] == "validated"


@pytest.mark.compile
@pytest.mark.slow
def test_no_steps_at_all(tmp_path: Path):
    """Sums of nothing are zeros, which are stored."""
    written(tmp_path)
    inputs = replace(spec_of(), id="none", values=spec_of().values | {"K": 0})
    assert judged(tmp_path, inputs)["status"] == "validated"


@pytest.mark.compile
def test_a_launch_repeats_its_bits(tmp_path: Path, monkeypatch):
    """In whatever turns its programs run; with another number of programs they are others, within what the order of one sum can change."""
    written(tmp_path)
    found: dict[Dealing, bytes] = {}
    terms: set[int] = set()
    ways = [Dealing(n, order) for n in (4, 13) for order in (FORWARD, BACKWARD, ALTERNATING, DRAWN)]
    ways.append(Dealing(1, IN_ORDER))
    compared, left = pair.compare, list(ways)

    def keep(source, translated, *given):
        found[left.pop(0)] = translated.buffers[2].data.tobytes()
        terms.add(given[0])
        return compared(source, translated, *given)

    dealt(monkeypatch, *ways)
    monkeypatch.setattr(pair, "compare", keep)
    assert judged(tmp_path, spec_of())["status"] == "validated"
    bits = {n: {data for way, data in found.items() if way.programs == n} for n in (4, 13)}
    assert all(len(x) == 1 for x in bits.values()) and bits[4] != bits[13]
    assert terms == {1 + STEPS * BLOCK}


WAIT = """        while {tl}.atomic_add({marks} + {slots} + {other}, 0, sem="acquire") < {threads}:
            pass
"""
MARK = '    {tl}.atomic_add({marks} + {slots} + {program} + {tl}.arange(0, {threads}) * 0, 1, sem="release")\n'
MISTAKES = {
    "a mark before the sum is there": ("_LEFT", f"{{stored}}\n{MARK}", f"{MARK}{{stored}}\n"),
    "a part is left out": ("_LEFT", "{step}, 0)\n", "0, 0)\n"),
    "a part is added twice": ("_LEFT", "{added}\n", "{added}\n{added}\n"),
    "a wait is left out": ("_LEFT", WAIT, ""),
    "a mark that orders nothing": ("_LEFT", '1, sem="release"', '1, sem="relaxed"'),
    "a wait that orders nothing": ("_LEFT", '0, sem="acquire"', '0, sem="relaxed"'),
    "no mark": ("_LEFT", MARK, ""),
    "a mark of one thread": ("_LEFT", "{tl}.arange(0, {threads}) * 0, 1,", "0, {threads},"),
    "a wait that one warp knows of": ("_LEFT", "        {tl}.debug_barrier()\n", ""),
    "a mark of fewer threads than are waited for": ("_LEFT", "{tl}.arange(0, {threads})", "{tl}.arange(0, 32)"),
    "its own sums in place of another's": ("_LEFT", "    {other} -= 1\n", "    {other} -= 0\n"),
    "the sums of the next but one": ("_LEFT", "    {other} -= 1\n", "    {other} -= 2\n"),
    "a step is done twice": ("_HEAD", "max({first_step}, 0) % {steps}", "max({first_step} - 1, 0) % {steps}"),
    "a step is left out": ("_HEAD", "{tile} == {last_tile}, {last_step}", "{tile} == {last_tile}, {last_step} - 1"),
    "the last tile is left out": ("_HEAD", "{last_tile} + min({last_step}, 1)", "{last_tile}"),
    "shares that overlap": ("_HEAD", "{next_program} = {program} + 1", "{next_program} = {program} + 2"),
}


@pytest.mark.one_of(2)
@pytest.mark.compile
@pytest.mark.parametrize("what", slow_but(MISTAKES, 2))
def test_mistakes_are_found(what: str, tmp_path: Path, monkeypatch):
    """As a validation runs a launch: the launch itself, without variants."""
    template, old, new = MISTAKES[what]
    right = getattr(stream_k, template)
    assert right.count(old) == 1
    monkeypatch.setattr(stream_k, template, right.replace(old, new))
    (tmp_path / "output.py").write_text(translate(tmp_path, SOURCE, spec_of(), target="gfx950", **chosen()).text)
    answer = judged(tmp_path, spec_of())
    assert answer["status"] in ("mismatch", "hazard"), answer


def test_what_is_read_has_to_be_known_of():
    """Released behind the store, and acquired before the load: each of them alone says nothing."""

    class Sums:
        name, base, data = "sums", 0, np.zeros(8, np.uint8)

    running = [0]
    where, mark, value = np.array([0, 4]), np.array([64]), np.zeros(2, np.float32)

    def run(program: int, *steps: str) -> HandedOver:
        running[0] = program
        for step in steps:
            if step == "store":
                over.store(Sums, where, None, slice(None), value)
            elif step == "load":
                over.load(Sums, where, 4, None, slice(None))
            elif step == "barrier":
                over.barrier()
            else:
                kind, _, one = step.partition(" by ")
                over.atomic(mark, ("add", kind, "gpu"), not one)

    for before, after in (
        (("store", "release"), ("acquire", "load")),
        (("store", "acq_rel"), ("acq_rel", "load")),
        (("store", "release"), ("acquire by one", "barrier", "load")),
    ):
        over = HandedOver(lambda: running[0], "sums")
        run(3, *before), run(4, *after), run(3, "load")
    for before, after in (
        (("store", "release"), ("load",)),
        (("store", "release"), ("relaxed", "load")),
        (("store", "relaxed"), ("acquire", "load")),
        (("release", "store"), ("acquire", "load")),
        (("store", "release", "store"), ("acquire", "load")),
        (("store", "release by one"), ("acquire", "load")),
        (("store", "barrier", "release by one"), ("acquire", "load")),
        (("store", "release"), ("acquire by one", "load")),
        (("store", "release"), ("barrier", "acquire by one", "load")),
    ):
        over = HandedOver(lambda: running[0], "sums")
        run(3, *before)
        with pytest.raises(Hazard, match="no mark says that program 3") as found:
            run(4, *after)
        assert found.value.kind == "unordered"


def test_tiles_are_cut_in_several_ways():
    shared = object()
    every = Programs(tuple(range(6)), IN_ORDER)
    counts = [way.programs for way in dealings(shared, (6,), every, False, False)]
    assert counts == [1, 5, 13, 13] and dealings(shared, (6,), every, True, False) == (Dealing(13, BACKWARD),)
    assert dealings(shared, (6,), every, False, True) == (None,)
    assert dealings(None, (6,), every, False, False) == (None,)
    assert dealings(shared, (6,), Programs((0, 5), IN_ORDER), False, False) == (None,)
    assert dealings(shared, (6,), Programs(every.numbers, LAST_FIRST), False, False) == (None,)
    assert (
        max(way.programs * 3 for way in dealings(shared, (90, 3), Programs(tuple(range(270)), IN_ORDER), False, False))
        <= 128
    )


LOOP = "    for k in range(0, tl.cdiv(K, BLOCK)):\n"
REFUSED = {
    "no loop": (SOURCE[SOURCE.index(LOOP) :][: SOURCE[SOURCE.index(LOOP) :].index("    c_ptrs")], "", "no loop"),
    "two loops": ("    c_ptrs =", "    for i in range(0, N):\n        acc += 1.0\n    c_ptrs =", "more than one loop"),
    "a loop from elsewhere": ("range(0, tl.cdiv", "range(1, tl.cdiv", "begins at 0"),
    "a bound of the tile": ("tl.cdiv(K, BLOCK)):", "tl.cdiv(K - pid, BLOCK)):", "another number of steps"),
    "a bound that is loaded": (LOOP, LOOP.replace("K, BLOCK", "tl.load(c_ptr).to(tl.int32), BLOCK"), "another number of steps"),
    "a sum that begins elsewhere": ("acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)", "acc = tl.full((BLOCK, BLOCK), 1.0, tl.float32)", "neither a sum"),
    "a narrow sum": ("(BLOCK, BLOCK), dtype=tl.float32)", "(BLOCK, BLOCK), dtype=tl.float16)", "neither a sum"),
    "a sum that is rescaled": ("acc = tl.dot(a, b, acc)", "acc = tl.dot(a, b, acc * 0.5)", "neither a sum"),
    "a sum that is read": ("acc = tl.dot(a, b, acc)", "acc = tl.dot(a, b + tl.max(acc).to(tl.float16), acc)", "neither a sum"),
    "a maximum": ("acc = tl.dot(a, b, acc)", "acc = tl.maximum(tl.dot(a, b), acc)", "neither a sum"),
    "a difference": ("acc = tl.dot(a, b, acc)", "acc -= tl.dot(a, b)", "neither a sum"),
    "moved by what the step says": ("a_ptrs += BLOCK\n", "a_ptrs += BLOCK + k * 0\n", "neither a sum"),
    "moved in a branch": ("a_ptrs += BLOCK\n", "if k > 2:\n            a_ptrs += BLOCK\n", "not changed once"),
    "what the last step made": ("    c_ptrs =", "    acc += tl.sum(tl.load(a_ptrs, mask=rows[:, None] < 0, other=0.0))\n    c_ptrs =", "neither a sum"),
    "a store in the loop": ("acc = tl.dot(a, b, acc)", "acc = tl.dot(a, b, acc)\n        tl.store(c_ptr, 1.0)", "for each part"),
    "an atomic before the loop": (LOOP, "    tl.atomic_add(c_ptr, 1.0)\n" + LOOP, "for each part"),
    "an argument that is changed": ("    rows =", "    a_ptr += 0\n    rows =", "the next part of a tile needs the argument"),
    "a return": ("    rows =", "    if pid > N: return\n    rows =", "the program would end here"),
    "nothing behind the loop": (SOURCE[SOURCE.index("    c_ptrs =") :], "", "nothing stands behind"),
    "it deals with programs itself": ("pid = tl.program_id(0)", "pid = tl.program_id(0) + tl.num_programs(0) * 0", "any number of programs"),
    "no number": ("pid = tl.program_id(0)", "pid = 0", "does not ask"),
}  # fmt: skip


def refused(folder: Path, text: str, target: str = "gfx950", choices: Choices = STREAM_K, **options) -> list:
    (folder / "source.py").write_text(text)
    request = TranslateRequest(str(folder / "source.py"), target, launches=(spec_of(),), **chosen(choices), **options)
    result = translate_kernel(request)
    assert result.text is None
    return [*result.diagnostics, *(d for o in result.outcomes for d in o.diagnostics)]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("what", REFUSED)
def test_other_kernels_are_refused(what: str, tmp_path: Path):
    old, new, why = REFUSED[what]
    assert SOURCE.count(old) == 1
    (found,) = refused(tmp_path, SOURCE.replace(old, new))
    assert found.code == "stream-k" and why in found.why and found.help and found.line and found.column


BESIDE = {
    "per-xcd": ({"choices": STREAM_K.over(choices_of(program_order="per-xcd"))}, "numbers"),
    "a general kernel": ({"fallback": "general"}, "any launch"),
    "general layouts": ({"general": True}, "any launch"),
    "warps with loops of their own": ({"strategy": "warp-specialized", "target": "gfx1250"}, "loops of their own"),
}


@pytest.mark.parametrize("what", BESIDE)
def test_what_cannot_stand_beside_is_refused(what: str, tmp_path: Path):
    options, why = BESIDE[what]
    found = refused(tmp_path, SOURCE, **options)
    assert [d.code for d in found][:1] == ["stream-k"] and why in found[0].why and found[0].help


LOOP_BY_INDEX = dedent("""
        for k in range(0, K, BLOCK):
            a = tl.load(a_ptrs + k, mask=(rows[:, None] < M) & (inner[None, :] < K - k), other=0.0)
            b = tl.load(b_ptrs + k * N, mask=(inner[:, None] < K - k) & (columns[None, :] < N), other=0.0)
            acc += tl.dot(a, b)
    """)
BODY = SOURCE[SOURCE.index(LOOP) : SOURCE.index("    c_ptrs =")]
INDENTED = "".join(f"    {line}\n" for line in LOOP_BY_INDEX.splitlines())
WAYS = {
    "an index that goes up by the block": SOURCE.replace(BODY, INDENTED),
    "a bound with a name of its own": SOURCE.replace(LOOP, LOOP.replace("tl.cdiv(K, BLOCK)", "steps")).replace(
        "    rows =", "    whole = K + (BLOCK - 1)\n    steps = whole // BLOCK\n    rows =", 1
    ),
    "pointers that are read before": SOURCE.replace(
        LOOP, "    first = tl.load(a_ptrs, mask=rows[:, None] < 0, other=0.0)\n" + LOOP
    ),
    "offsets that move": SOURCE.replace("inner[None, :] < K - k * BLOCK", "inner[None, :] < K")
    .replace("(inner[:, None] < K - k * BLOCK)", "(inner[:, None] < K)")
    .replace("        b_ptrs += BLOCK * N\n", "        b_ptrs += BLOCK * N\n        inner = inner + BLOCK\n"),
    "a number that goes down": SOURCE.replace("K - k * BLOCK", "left")
    .replace(LOOP, "    left = K\n" + LOOP)
    .replace("        b_ptrs += BLOCK * N\n", "        b_ptrs += BLOCK * N\n        left -= BLOCK\n"),
    "two sums": SOURCE.replace("    acc =", "    total = tl.zeros((BLOCK,), tl.float32)\n    acc =", 1)
    .replace("        a_ptrs +=", "        total += tl.sum(a.to(tl.float32), axis=1)\n        a_ptrs +=")
    .replace("tl.store(c_ptrs, acc.", "tl.store(c_ptrs, (acc + total[:, None])."),
    "programs along another axis": SOURCE.replace("    c_ptrs =", "    c_ptr += 0 * N\n    c_ptrs =").replace(
        "    c_ptr += 0 * N\n    c_ptrs = c_ptr +", "    c_ptrs = c_ptr + tl.program_id(1) * M * N +"
    ),
    "a compile-time bound": SOURCE.replace("K, BLOCK: tl.constexpr", "K: tl.constexpr, BLOCK: tl.constexpr"),
    "conditions at compile time": SOURCE.replace(
        "BLOCK: tl.constexpr)", "BLOCK: tl.constexpr, WHOLE: tl.constexpr = False)"
    ).replace(
        "        acc = tl.dot(a, b, acc)\n",
        "        if WHOLE:\n            acc = tl.dot(tl.load(a_ptrs), b, acc)\n"
        "        else:\n            acc += tl.dot(a, b)\n",
    ),
    "names of the source": SOURCE.replace("pid", "tile").replace("rows", "programs").replace("inner", "sums"),
}


@pytest.mark.compile
@pytest.mark.parametrize("what", slow_but(WAYS))
def test_other_ways_to_write_it(what: str, tmp_path: Path):
    text, spec = WAYS[what], spec_of()
    assert text != SOURCE
    if what == "programs along another axis":
        longer = tensor(2 * M, N)
        longer["tensor"]["dtype"] = "float32"
        spec = replace(spec, grid=(TILES, 2), values=spec.values | {"c_ptr": longer})
    if what == "a compile-time bound":
        spec = replace(spec, signature=spec.signature | {"K": "constexpr"}, constexprs=spec.constexprs | {"K": K})
    validated(tmp_path, text, spec, "gfx950", **chosen())


@pytest.mark.compile
@pytest.mark.slow
@pytest.mark.parametrize(
    "fixture", ["fp8_matmul", "int8_matmul", "descriptor_matmul", "split_k_matmul", "batched_matmul"]
)
def test_products_of_fixtures(fixture: str, tmp_path: Path):
    """With several configurations, sums of integers, descriptors, programs along other axes."""
    specs = read_launches(str(FIXTURES / fixture / "launches.json"))
    text = (FIXTURES / fixture / "kernel.py").read_text()
    (tmp_path / "output.py").write_text(
        translate(tmp_path, text, *specs, target="gfx942", **chosen(kernel=specs[0].kernel)).text
    )
    for spec in specs:
        assert judged(tmp_path, spec, "gfx942", variants=True)["status"] == "validated"


@pytest.mark.compile
@pytest.mark.slow
@pytest.mark.parametrize("target, lanes", [("gfx950", 64), ("gfx1201", 32)])
def test_every_warp_releases_what_it_has_stored(target: str, lanes: int, tmp_path: Path):
    """Each thread has one addition to the mark, so none is left to another warp."""
    spec = replace(spec_of(), options={"num_warps": 4, "num_stages": 2})
    (tmp_path / "output.py").write_text(translate(tmp_path, SOURCE, spec, target=target, **chosen()).text)
    stages = lower_file(str(tmp_path / "output.py"), spec, target, keep_stages=True).stages
    module = parse_module(stages["ttgir"])
    (mark,) = [op for op in module.walk() if "release" in op.words]
    layout = module.layout(mark.type)
    assert mark.type.shape == (4 * lanes,)
    assert (layout.size_per_thread, layout.threads_per_warp, layout.warps_per_cta) == ((1,), (lanes,), (4,))


class Driver(types.SimpleNamespace):
    def get_current_device(self):
        return 0

    def get_active_torch_device(self):
        return "gpu"


def launched(monkeypatch, text: str, grid, *args, **kwargs) -> dict:
    """What the jit function of a file is run with on a GPU of 4 compute units, where host code launches `grid`."""
    seen: dict = {}
    allocated = lambda kind: lambda size, dtype, device: (kind, size, dtype, device)  # noqa: E731
    torch = types.SimpleNamespace(empty=allocated("empty"), zeros=allocated("zeros"), float32="f", int32="i")
    monkeypatch.setitem(sys.modules, "torch", torch)
    driver = Driver(utils=types.SimpleNamespace(get_device_properties=lambda _: {"multiprocessor_count": 4}))
    triton = types.SimpleNamespace(runtime=types.SimpleNamespace(driver=types.SimpleNamespace(active=driver)))
    params = [types.SimpleNamespace(name="BLOCK", has_default=True, default=32)]
    kernel = types.SimpleNamespace(
        params=params, arg_names=["M", "N", "BLOCK"], run=lambda *a, **k: seen.update(k, args=a)
    )
    scope = {"triton": triton, "product": kernel}
    around = text[text.index("def _run_stream_k_product") :]
    exec(around[: around.index("product.run)") + len("product.run)")], scope)
    kernel.run(*args, grid=grid, warmup=False, **kwargs)
    return seen


def test_host_code_launches_what_there_is_room_for(tmp_path: Path, monkeypatch):
    """However many tiles there are; sums and marks are for all of them, along the other axes too."""
    text = text_of()
    seen = launched(monkeypatch, text, (9,), 5, 6, num_warps=1)
    memory = {"sums": ("empty", 4 * BLOCK * BLOCK, "f", "gpu"), "marks": ("zeros", 4, "i", "gpu")}
    given = {"grid": (4,), "tiles": 9, "args": (5, 6), "num_warps": 1, "warmup": False}
    assert seen == given | memory
    assert launched(monkeypatch, text, lambda meta: (meta["N"] // meta["BLOCK"],), 1, 64)["tiles"] == 2
    several = launched(monkeypatch, text, (9, 2), 5, 6)
    assert several["grid"] == (2, 2) and several["marks"][1] == 4
    many = launched(monkeypatch, text, (9, 8, 1), 5, 6)
    assert many["grid"] == (1, 8, 1) and many["marks"][1] == 8
    assert launched(monkeypatch, text, (0,), 5, 6)["grid"] == (0,)
    twice = chosen(choices_of(programs="stream-k-2"))
    text = translate(tmp_path, SOURCE, spec_of(), target="gfx950", **twice).text
    assert launched(monkeypatch, text, (9,), 5, 6)["grid"] == (8,)


def test_the_check_of_arguments_is_inside():
    """It may ask for the programs that there are."""
    text = text_of()
    assert text.rindex("add_pre_run_hook(") < text.index("product.run = _run_stream_k_product")


def test_the_choice_is_part_of_a_file_of_kernels_alone():
    assert "product.run = _run_stream_k_product(product.run)" in text_of(standalone=True)


def test_a_kernel_inside_of_something_else_is_refused(tmp_path: Path):
    at = SOURCE.index("@triton.jit")
    inside = SOURCE[:at] + "def make():\n" + "".join(f"    {x}\n" if x else "\n" for x in SOURCE[at:].splitlines())
    spec = replace(spec_of(), kernel="make.<locals>.product")
    (tmp_path / "source.py").write_text(inside + "    return product\n")
    request = TranslateRequest(str(tmp_path / "source.py"), "gfx950", launches=(spec,), **chosen(kernel=spec.kernel))
    result = translate_kernel(request)
    found = [*result.diagnostics, *(d for o in result.outcomes for d in o.diagnostics)]
    assert result.text is None and {d.code for d in found} == {"stream-k"}


@pytest.mark.parametrize(
    "tiles, steps, per_unit, expected",
    [
        ((768,), 64, 2, Shares(512, 96, 3, 1)),
        ((512,), 64, 2, Shares(512, 64, 1, 0)),
        ((64,), 256, 2, Shares(512, 32, 2, 8)),
        ((256,), 64, 1, Shares(256, 64, 1, 0)),
        ((6,), 5, 1, Shares(30, 1, 1, 5)),
        ((100, 4), 64, 1, Shares(256, 100, 3, 1)),
        ((6,), 0, 1, Shares(6, 0, 1, 0)),
    ],
)
def test_shares_of_a_launch(tiles: tuple, steps: int, per_unit: int, expected: Shares):
    """On 256 compute units."""
    spec = LaunchSpec("k", "k", grid=tiles)
    assert shares(spec, steps, per_unit, TARGETS["gfx950"], TIMINGS["gfx950"]) == expected


@pytest.mark.compile
def test_a_launch_has_an_estimate_and_needs_its_host_code(tmp_path: Path):
    """Cut tiles cost what their sums take through L2; a bundle has no host code."""
    written(tmp_path)
    found = [
        lower_and_walk(str(tmp_path / "output.py"), replace(spec_of(), grid=(n,)), "gfx950").cycles for n in (6, 256)
    ]
    assert [list(x.estimate.trips.values()) for x in found] == [[1], [STEPS]] and found[0].staying == 1
    assert {x.hot.label for x in found} == set(found[0].estimate.trips) and found[1].estimate.rounds == 1
    without = lower_and_walk(str(tmp_path / "output.py"), replace(spec_of(), values={}), "gfx950").cycles
    assert "does not decide how many steps" in without.estimate
    pool = types.SimpleNamespace(call=lambda job, *given, **more: compile_native(*given))
    request = BundleRequest(str(tmp_path / "source.py"), str(tmp_path / "output.py"), spec_of(), "gfx950")
    with pytest.raises(Refused, match="allocates memory") as refusal:
        build_bundle(pool, request)
    assert refusal.value.diagnostics[0].code == "not-bundled"


@pytest.mark.compile
@pytest.mark.slow
def test_machine_code_is_run_with_tiles_that_are_cut(tmp_path: Path):
    """One program after another, with memory for sums and marks behind the tensors of the source."""
    validated(tmp_path, SOURCE, spec_of(), "gfx950", **chosen())
    runs: list[SourceRun] = []
    files = [str(tmp_path / name) for name in ("source.py", "output.py")]
    job = {"source": files[0], "output": files[1], "launch": spec_of(), "target": "gfx950", "variants": False}
    validate_job(job, runs.append)
    (run,) = runs
    assert run.programs == tuple(range(TILES)) and run.translated == tuple(range(2 * TILES + 1)) and not run.turns
    requests: list = []
    session = types.SimpleNamespace(run=lambda request: requests.append(request) or Stopped("fault", "stopped"))
    sides = [Side.of(compile_native(file, spec_of(), "gfx950", (), False, False), "gfx950") for file in files]
    EmulatedLaunch(session, *sides, 1.0).observe(run)
    assert [(request.grid[0], len(request.tensors)) for request in requests] == [(TILES, 3), (2 * TILES + 1, 5)]
    *_, sums, marks = requests[1].tensors
    assert (len(sums), len(marks)) == (13 * BLOCK * BLOCK * 4, 13 * 4) and not any(marks)


def test_no_search_takes_it():
    """Sums are made in another order."""
    assert not any(("programs", "stream-k") in row.choices.overrides for row in ROWS) and set(SUMMED) == {
        "fp32",
        "int32",
    }


def test_what_triton_does_not_take_is_refused(tmp_path: Path, monkeypatch):
    """The derived kernel is Triton's to judge."""
    trace = translation.trace_launch

    def traced(fn, *given):
        if "sums" in fn.arg_names:
            raise CompilationError(fn.src, ast.parse(fn.src).body[0], "not in a loop")
        return trace(fn, *given)

    monkeypatch.setattr(translation, "trace_launch", traced)
    (found,) = refused(tmp_path, SOURCE)
    assert found.code == "stream-k" and "not in a loop" in found.why and found.line
