"""What is checked before a launch: the hook of a translated kernel, and the launcher of `--fallback general`."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import fixture_set
import numpy as np
import pytest
from gluonize.facts.integers.host_bounds import Bound, Condition, argument, most_of_two, plus, programs, times
from gluonize.gluon.trees.function import formatted
from gluonize.judge.verdict import validate_launch
from gluonize.judge.verdict.launch_check import launch_check
from gluonize.output.contracts.launch_checks import SWITCH, Asked, AskedOfSome, Checks, RunTimeContract
from gluonize.output.contracts.seen_rows import torch_name
from gluonize.output.file.fallback import LAUNCHER, LAUNCHER_IMPORTS
from gluonize.read.spec.launch import LaunchSpec
from gluonize.triton_api.language import tl
from launch_checks_of import check_for, check_of
from test_family import COPY, LOOP, copy, loop
from translation_of import dedent, launch, tensor, translate, validated
from triton.compiler.errors import CompilationError


@dataclass
class Storage:
    bytes: int

    def size(self) -> int:
        return self.bytes


@dataclass
class Tensor:
    """What the checks see of a torch tensor."""

    bytes: int = 4096
    dtype: str = "torch.float32"
    shape: tuple = (1024,)

    def untyped_storage(self) -> Storage:
        return Storage(self.bytes)


@dataclass
class Kernel:
    """A kernel that writes down its launches."""

    arg_names: tuple = ("x_ptr", "y_ptr", "n", "BLOCK")
    launches: list = field(default_factory=list)
    error: Exception | None = None
    best_config: str = "tuned"

    def run(self, *args, grid, warmup, **kwargs):
        if self.error is not None:
            raise self.error
        self.launches.append((args, grid, kwargs))


ARGUMENTS = ("x_ptr", "y_ptr", "n", "BLOCK")


def check():
    return check_for(RunTimeContract(("x_ptr", "y_ptr"), ("n",)), ARGUMENTS, ("BLOCK",))


def test_arguments_within_the_contract_pass():
    check()(Tensor(2**31 - 1), Tensor(), 0, BLOCK=256)
    check()(x_ptr=Tensor(), y_ptr=None, n=5)
    check()(object(), object(), 5, BLOCK=256, num_warps=4)  # as a warm-up has types for tensors


@pytest.mark.parametrize(
    "args, kwargs, message",
    [
        ((Tensor(2**31), Tensor(), 1), {}, "one of x_ptr, y_ptr has 2 GiB or more"),
        ((Tensor(),), {"y_ptr": Tensor(2**31), "n": 1}, "one of x_ptr, y_ptr has 2 GiB or more"),
        ((Tensor(), Tensor(), -1), {}, "n=-1 is negative"),
    ],
    ids=["positional", "named", "negative"],
)
def test_arguments_outside_the_contract_are_named(args, kwargs, message):
    with pytest.raises(ValueError, match=f"kernel: {message}"):
        check()(*args, **kwargs)


def checked_number(text_of: Bound, most: int, **more):
    contract = RunTimeContract((), (), (), ((Condition(text_of, most), "n"),), **more)
    return check_for(contract, ARGUMENTS, ("BLOCK",))


@pytest.mark.parametrize("kind", [int, np.int64, np.int32, np.int8, tl.constexpr], ids=lambda kind: kind.__name__)
def test_every_whole_number_is_one(kind):
    """Products of numpy's own numbers would wrap around."""
    product = checked_number(times(argument("BLOCK"), argument("n")), 2**31 - 1)
    product(None, None, 2**24, BLOCK=kind(64))
    with pytest.raises(ValueError, match="is false for BLOCK=.*64.*, n=33554432"):
        product(None, None, 2**25, BLOCK=kind(64))
    multiple = check_for(RunTimeContract((), ("n",), multiples=("n",)), ARGUMENTS)
    multiple(None, None, kind(64))
    for wrong in (kind(-16), kind(8)):
        with pytest.raises(ValueError, match="n=.* is (not a multiple of 16|negative)"):
            multiple(None, None, wrong)


def test_a_flag_is_a_number():
    multiple = check_for(RunTimeContract((), (), multiples=("n",)), ARGUMENTS)
    multiple(None, None, False)
    with pytest.raises(ValueError, match="n=True is not a multiple of 16"):
        multiple(None, None, True)


def test_an_argument_that_some_launch_leaves_out_counts_as_nothing():
    optional = check_for(RunTimeContract((), ("n",), multiples=("n",)), ARGUMENTS, optional=("n",))
    optional(None, None, None)
    optional(None, None, 16)
    with pytest.raises(ValueError, match="n=8 is not a multiple of 16"):
        optional(None, None, 8)


@pytest.mark.parametrize("name", ["max", "min", "int", "options", "below_2gib", "grid"])
def test_an_argument_may_have_the_name_of_what_conditions_call(name):
    """Of what a launch is asked for nothing changes, nor of how it is called."""
    most = Condition(plus(most_of_two(argument(name), argument("BLOCK")), programs(0)), 100)
    contract = RunTimeContract(("x_ptr",), ("n", name), (), ((most, ""),))
    some = AskedOfSome({"num_warps": 4}, "num_warps=4", (name,), ())
    checked = check_for(replace(contract, of_some=(some,)), ("x_ptr", "n", "BLOCK", name), ("BLOCK",))
    checked(Tensor(), 5, 32, 16)
    checked(Tensor(), 5, 32, 5, num_warps=8)
    for wrong in ((Tensor(2**31), 5, 32, 16), (Tensor(), 5, 32, -16), (Tensor(), 5, 32, 112), (Tensor(), 5, 32, 5)):
        with pytest.raises(
            ValueError, match="kernel: .*( has 2 GiB|not all >= 0|is negative|is false for|out of range|multiple)"
        ):
            checked(*wrong)
    with pytest.raises(ValueError, match="is false for|out of range"):
        checked(Tensor(), 5, 32, 16, grid=(70,))


def test_one_variable_of_the_environment_leaves_launches_unchecked(monkeypatch, tmp_path):
    path = tmp_path / "switched.py"
    path.write_text(translate(tmp_path, COPY, copy("fp32")).text)
    assert f"{SWITCH}=0 in the environment" in path.read_text().partition("import")[0]
    assert len(_imported(path).k.pre_run_hooks) == 1
    monkeypatch.setenv(SWITCH, "1")
    assert len(_imported(path).k.pre_run_hooks) == 1
    monkeypatch.setenv(SWITCH, "0")
    assert not _imported(path).k.pre_run_hooks


SOME = AskedOfSome({"x_ptr": "bfloat16", "BLOCK": 64}, "x_ptr bf16, BLOCK=64", ("n",), ("y_ptr",))
ASKS_SOME = RunTimeContract(("x_ptr",), (), multiples=("m",), of_some=(SOME,))


@dataclass
class Placed(Tensor):
    start: int = 4096

    def data_ptr(self) -> int:
        return self.start


@pytest.mark.parametrize(
    "given, message",
    [
        ({}, ""),
        ({"dtype": "torch.float16", "n": 5, "start": 4098}, ""),
        ({"block": 32, "n": 5, "start": 4098}, ""),
        ({"n": 5}, "n=5 is not a multiple of 16"),
        ({"start": 4098}, "y_ptr is not at a multiple of 16 bytes"),
        ({"block": None, "n": 5}, "n=5 is not a multiple of 16"),  # what a launch does not show may be the one
        ({"dtype": "torch.float16", "m": 5}, "m=5 is not a multiple of 16"),
    ],
    ids=str,
)
def test_what_one_of_several_texts_rests_on_is_asked_of_its_launches(given, message):
    checked = check_for(ASKS_SOME, ("x_ptr", "y_ptr", "m", "n", "BLOCK"), ("BLOCK",))
    x = Placed(dtype=given.get("dtype", "torch.bfloat16"))
    block = {} if (size := given.get("block", 64)) is None else {"BLOCK": size}
    arguments = (x, Placed(start=given.get("start", 4096)), given.get("m", 16), given.get("n", 16))
    if not message:
        checked(*arguments, **block)
        return
    with pytest.raises(ValueError, match=f"kernel: {message}"):
        checked(*arguments, **block)


def test_what_one_of_several_texts_rests_on_is_said_with_its_launches():
    assert "n and addresses of y_ptr divisible by 16 for x_ptr bf16, BLOCK=64" in ASKS_SOME.lines()


@pytest.mark.parametrize("fallback", [None, "general"])
def test_a_launch_is_not_refused_for_what_the_text_of_another_rests_on(fallback, tmp_path):
    """Rows of 16-bit floats are copied straight to LDS, which takes aligned ones; bf16 comes with any."""
    aligned = loop(64, 64, 64, 4, 2)
    signature = aligned.signature | {"a_ptr": "*bf16", "b_ptr": "*bf16"}
    other = replace(aligned, id="bf16", signature=signature, attrs={})
    options = {} if fallback is None else {"fallback": fallback}
    path = tmp_path / "checked.py"
    path.write_text(translate(tmp_path, LOOP, aligned, other, target="gfx950", **options).text)
    module = _imported(path)

    def given(kind: str) -> dict:
        tensors = {name: Placed(dtype=f"torch.{kind}") for name in ("a_ptr", "b_ptr")}
        return tensors | {"c_ptr": Placed(), "K": 50, "row": 50, "BM": 64, "BN": 64, "BK": 64}

    if fallback is not None:
        assert module._fits_k(given("bfloat16")) and not module._fits_k(given("float16"))
        return
    (hook,) = module.k.pre_run_hooks
    hook(**given("bfloat16"))
    with pytest.raises(ValueError, match="not (all|a) multiples? of 16"):
        hook(**given("float16"))


def test_the_hook_is_on_the_jit_function_under_autotune(tmp_path):
    decorator = '@triton.autotune([triton.Config({"BLOCK": 1024})], key=["n"])\n'
    source = COPY.replace("@triton.jit", decorator + "@triton.jit")
    text = translate(tmp_path, source, copy("fp32")).text
    assert text.rstrip().endswith("    k.fn.add_pre_run_hook(_check_k)")
    path = tmp_path / "hooked.py"
    path.write_text(text)
    module = _imported(path)
    (hook,) = module.k.fn.pre_run_hooks
    with pytest.raises(ValueError, match="k: one of x_ptr, y_ptr has 2 GiB or more"):
        hook(Tensor(), y_ptr=Tensor(2**32), n=1)


TWO = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def part(x_ptr, start, B: tl.constexpr):
        return tl.load(x_ptr + start + tl.arange(0, B))


    @triton.jit
    def k(x_ptr, y_ptr, start, B: tl.constexpr):
        x_ptr += B
        tl.store(y_ptr + tl.arange(0, B), part(x_ptr, start, B))


    @triton.jit
    def _fill(z_ptr, B: tl.constexpr):
        tl.store(z_ptr + tl.arange(0, B), 1.0)
""")


@pytest.mark.parametrize("standalone", [False, True])
def test_each_kernel_has_a_check_of_its_own(standalone, tmp_path):
    kinds = {"x_ptr": "*fp32", "y_ptr": "*fp32", "start": "i32"}
    specs = [launch("k", kinds, {"B": 64}), launch("_fill", {"z_ptr": "*fp32"}, {"B": 64})]
    text = translate(tmp_path, TWO, *specs, standalone=standalone).text
    path = tmp_path / "shared.py"
    path.write_text(text)
    module = _imported(path)
    (first,), (second,) = module.k.pre_run_hooks, module._fill.pre_run_hooks
    first(Tensor(), Tensor(), 0)
    second(Tensor())
    with pytest.raises(ValueError, match="^_fill: z_ptr has 2 GiB or more"):
        second(Tensor(2**31))
    with pytest.raises(ValueError, match="^k: one of x_ptr, y_ptr has 2 GiB or more"):
        first(Tensor(), y_ptr=Tensor(2**31), start=0)
    with pytest.raises(ValueError, match="^k: start=-1 is negative"):
        first(Tensor(), Tensor(), -1)
    # Whoever asks the file without launching gets the same answer.
    asked = launch_check(ast.parse(text), "k", LaunchSpec("k", "k", constexprs={"B": 64}), {})
    refused = asked(SimpleNamespace(arguments={"x_ptr": None, "y_ptr": None, "start": -1}, left_out=(), grid=()))
    assert refused == "k: start=-1 is negative"


def test_who_asks_without_launching_is_told_of_the_grid_too():
    """Without that answer, inputs are made that the translation refuses, and what is wrong with them is taken for its fault."""
    text = (fixture_set.ROOT / "descriptor_matmul" / "golden" / "gfx1250.py").read_text()
    asked = launch_check(ast.parse(text), "descriptor_matmul_kernel", LaunchSpec("k", "descriptor_matmul_kernel"), {})
    for grid, why in (((2, 2), ""), ((2, 2**25), "descriptor_matmul_kernel: grid[1] <= 16777216 is false")):
        refused = asked(SimpleNamespace(arguments={"K": 64}, left_out=(), grid=grid))
        assert refused.startswith(why) and bool(refused) == bool(why)


def test_a_check_that_is_given_arguments_by_their_names_is_asked():
    text = (
        "def _check_k(x, **__):\n    if x < 0:\n        raise ValueError(f'k: {x=} is negative')\n\n\n"
        "k.add_pre_run_hook(lambda *args, **given: _check_k(**dict(zip(k.arg_names, args)) | given))\n"
    )
    asked = launch_check(ast.parse(text), "k", LaunchSpec("k", "k"), {})
    found = [asked(SimpleNamespace(arguments={"x": x}, left_out=(), grid=(1,))) for x in (1, -1)]
    assert found == ["", "k: x=-1 is negative"]


def _imported(path):
    import importlib.util

    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The launcher ----------------------------------------------------------------------------------------------------------


def launcher(tmp_path, *launches):
    """The public kernel of a translation with a general kernel, both replaced by ones that write down launches."""
    path = tmp_path / "general.py"
    path.write_text(translate(tmp_path, COPY, *launches, fallback="general").text)
    public = _imported(path).k
    assert public.general.fn.__name__ == "k_general" and not public.general.is_gluon() and public.fn.is_gluon()
    public.fn, public.general = Kernel(), Kernel()
    return public


@pytest.mark.parametrize(
    "args, kwargs, general",
    [
        ((Tensor(), Tensor(), 5), {"BLOCK": 1024}, False),
        ((Tensor(), Tensor(), 5), {"BLOCK": 1024, "num_warps": 4}, False),
        ((Tensor(), Tensor(2**31), 5), {"BLOCK": 1024}, True),
        ((Tensor(), Tensor(), 5), {"BLOCK": 1024, "num_warps": 8}, True),
    ],
    ids=["plain", "warps", "large", "other-warps"],
)
def test_launcher_picks_by_the_arguments(tmp_path, args, kwargs, general):
    public = launcher(tmp_path, copy("fp32"))
    public[(7,)](*args, **kwargs)
    chosen, other = (public.general, public.fn) if general else (public.fn, public.general)
    assert chosen.launches == [(args, (7,), kwargs)] and other.launches == []


def test_a_launch_without_a_number_of_warps_has_four(tmp_path):
    public = launcher(tmp_path, copy("fp32", warps=8))
    public[(1,)](Tensor(), Tensor(), 5, BLOCK=1024)
    assert len(public.general.launches) == 1 and public.fn.launches == []


def test_launcher_picks_by_the_types(tmp_path):
    public = launcher(tmp_path, copy("fp32"), copy("fp16", warps=8))
    public[(1,)](Tensor(dtype="torch.float16"), Tensor(dtype="torch.float16"), 5, BLOCK=1024, num_warps=8)
    public[(1,)](Tensor(dtype="torch.int8"), Tensor(dtype="torch.int8"), 5, BLOCK=1024, num_warps=8)
    assert len(public.fn.launches) == len(public.general.launches) == 1


def test_launcher_takes_the_general_kernel_when_the_translation_refuses_while_compiling(tmp_path):
    public = launcher(tmp_path, copy("fp32"))
    public.fn.error = CompilationError(None, None, "k is translated for BLOCK=1024")
    public[(1,)](Tensor(), Tensor(), 5, BLOCK=64)
    assert len(public.general.launches) == 1
    public.fn.error = RuntimeError("the device is gone")
    with pytest.raises(RuntimeError):
        public[(1,)](Tensor(), Tensor(), 5, BLOCK=64)


@pytest.mark.parametrize("dtype", ["fp32", "u8"])
def test_inputs_of_the_general_kernel_are_not_tried_on_the_translation(tmp_path, dtype):
    """Far offsets and the like go to the kernel as it was written: the translation need not serve them."""
    path = tmp_path / "general.py"
    path.write_text(translate(tmp_path, COPY, copy(dtype), fallback="general").text)
    answer = validate_launch(str(tmp_path / "source.py"), str(path), copy(dtype), "gfx942")
    assert answer["status"] == "validated", answer
    if dtype != "fp32":  # tensors of bytes do not come so far
        return
    # A launcher that would send them all to the translation is found out.
    fits = "tensor.untyped_storage().size() < 2**31"
    path.write_text(path.read_text().replace(fits, fits.replace("2**31", "2**39")))
    answer = validate_launch(str(tmp_path / "source.py"), str(path), copy(dtype), "gfx942")
    assert answer["status"] in ("mismatch", "hazard") and "buffer offset" in answer["reason"], answer


def test_launcher_shows_what_the_kernel_shows(tmp_path):
    assert launcher(tmp_path, copy("fp32")).best_config == "tuned"


def test_launcher_needs_nothing_of_gluonize():
    exec("\n".join([*(line.text for line in LAUNCHER_IMPORTS), LAUNCHER]), space := {})
    assert space["_OrGeneral"].__mro__[1].__module__ == "triton.runtime.jit"


@pytest.mark.parametrize("triton, torch", [("fp16", "float16"), ("i32", "int32"), ("u8", "uint8"), ("i1", "bool")])
def test_torch_names_of_element_types(triton, torch):
    assert torch_name(triton) == torch


# Defaults ---------------------------------------------------------------------------------------------------------------

SHIFTED = dedent("""
    import triton
    import triton.language as tl

    SHIFT = {default}


    {decorators}@triton.jit
    def k(x_ptr, y_ptr, apart, BLOCK: tl.constexpr, shift=SHIFT):
        offs = tl.arange(0, BLOCK)
        row_ptr = x_ptr + (tl.program_id(0) + 1) * apart
        tl.store(y_ptr + tl.program_id(0) * BLOCK + offs, tl.load(row_ptr + (offs + shift)))
""")
HEURISTICS = '@triton.heuristics({"BLOCK": lambda args: 64})\n'
MADE_ANEW = "@(lambda kernel: kernel)\n"


def shifted(tmp_path, default: int, decorators: str = "", **options):
    source = SHIFTED.format(default=default, decorators=decorators)
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "apart": "i32", "shift": "i32"}
    text = translate(tmp_path, source, launch("k", signature, {"BLOCK": 64}), **options).text
    path = tmp_path / "shifted.py"
    path.write_text(text)
    return text, _imported(path).k


EVERY_DECORATION = pytest.mark.parametrize(
    "decorators", ["", HEURISTICS, MADE_ANEW], ids=["global", "heuristics", "wrapped"]
)


@EVERY_DECORATION
def test_an_argument_that_is_left_to_its_default_is_checked(tmp_path, decorators):
    text, kernel = shifted(tmp_path, 0, decorators)
    assert "shift" in text.partition("import")[0], text  # what the file says that it assumes
    (hook,) = (kernel.fn if decorators == HEURISTICS else kernel).pre_run_hooks
    hook(Tensor(), Tensor(), 200, BLOCK=64)
    hook(Tensor(), Tensor(), 200, 64, 5)
    hook(Tensor(), Tensor(), 200, BLOCK=64, shift=5)
    for given in (dict(BLOCK=64, shift=-1), dict(BLOCK=64, shift=-5)):
        with pytest.raises(ValueError, match="k: shift=-[15] is negative"):
            hook(Tensor(), Tensor(), 200, **given)
    with pytest.raises(ValueError, match="k: shift=-[15] is negative"):
        hook(Tensor(), Tensor(), 200, 64, -1)


@EVERY_DECORATION
def test_a_default_of_the_source_is_never_refused(tmp_path, decorators):
    text, kernel = shifted(tmp_path, -5, decorators)
    assert "shift" not in text.partition("import")[0], text
    (hook,) = (kernel.fn if decorators == HEURISTICS else kernel).pre_run_hooks
    hook(Tensor(), Tensor(), 200, BLOCK=64)
    hook(Tensor(), Tensor(), 200, 64, -1)


@EVERY_DECORATION
def test_a_check_reads_the_default_of_what_is_not_passed(tmp_path, decorators):
    source = ROWS.format(decorators=decorators).replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, stride=2**15")
    source = source.replace("apart, stride,", "apart,")
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "apart": "i32", "stride": "i32"}
    (tmp_path / "rows.py").write_text(translate(tmp_path, source, launch("k", signature, {"BLOCK": 64})).text)
    module = _imported(tmp_path / "rows.py")
    arguments = dict(x_ptr=Tensor(), y_ptr=Tensor(), apart=1, BLOCK=64)
    for grid, given in (((4,), {}), ((2**12,), {"stride": 1})):
        with pytest.raises(RuntimeError, match="active drivers"):  # past the check
            module.k[grid](**arguments, **given)
    with pytest.raises(ValueError, match=r"k: .*grid\[0\].*stride=32768"):
        module.k[(2**12,)](**arguments)


def test_a_product_of_compile_time_numbers_is_checked_by_their_names(tmp_path):
    """Another launch of the kernel may have another value of each."""
    source = (
        ROWS.format(decorators="")
        .replace("* BLOCK +", "* (BLOCK * PARTS) +")
        .replace("BLOCK: ", "PARTS: tl.constexpr, BLOCK: ")
    )
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "apart": "i32", "stride": "i32"}
    text = translate(tmp_path, source, launch("k", signature, {"BLOCK": 64, "PARTS": 4})).text
    assert "#   assumes ((grid[0] - 1) * (BLOCK * PARTS) + BLOCK - 1) * stride <= 2**" in text, text


def test_the_launcher_sees_defaults(tmp_path):
    for default, passed, general in ((0, {}, 0), (0, {"shift": -5}, 1), (-5, {}, 0)):
        _, public = shifted(tmp_path, default, fallback="general")
        public.fn, public.general = Kernel(), Kernel()
        public.fn.arg_names = public.general.arg_names = ("x_ptr", "y_ptr", "apart", "BLOCK", "shift")
        public[(1,)](Tensor(), Tensor(), 200, BLOCK=64, **passed)
        assert len(public.general.launches) == general and len(public.fn.launches) == 1 - general


# Grids -------------------------------------------------------------------------------------------------------------------

ROWS = dedent("""
    import triton
    import triton.language as tl


    {decorators}@triton.jit
    def k(x_ptr, y_ptr, apart, stride, BLOCK: tl.constexpr):
        rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        base = x_ptr + tl.program_id(1) * apart
        tl.store(y_ptr + rows, tl.load(base + rows * stride))
""")


@pytest.mark.parametrize("decorators", ["", HEURISTICS, MADE_ANEW], ids=["global", "heuristics", "wrapped"])
def test_a_check_that_asks_for_the_grid_sees_it(tmp_path, decorators):
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "apart": "i32", "stride": "i32"}
    text = translate(tmp_path, ROWS.format(decorators=decorators), launch("k", signature, {"BLOCK": 64})).text
    assert "#   assumes (grid[0] * BLOCK - 1) * stride <= 2**" in text, text
    path = tmp_path / "rows.py"
    path.write_text(text)
    module = _imported(path)
    arguments = dict(x_ptr=Tensor(), y_ptr=Tensor(), apart=1, stride=2**15, BLOCK=64)
    for grid in ((2**12,), lambda meta: (2**18 // meta["BLOCK"], 3)):
        with pytest.raises(ValueError, match=r"k: .*grid\[0\].*stride=32768"):
            module.k[grid](**arguments)
    if decorators:
        return
    check = check_of(text, "k")
    check(grid=(4,), **arguments)  # what is launched otherwise
    check.run(grid=(2**12,), warmup=True, **arguments)
    with pytest.raises(ValueError, match="not all >= 0: .*stride=-1"):
        check(grid=(4,), **arguments | {"stride": -1})


SHARED_OUT = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def k(a_ptr, b_ptr, out_ptr, K, B: tl.constexpr):
        r = tl.arange(0, B)
        each = K // B // tl.num_programs(0)
        acc = tl.zeros((B, B), tl.float32)
        for i in range(tl.program_id(0) * each, tl.program_id(0) * each + each):
            a = tl.load(a_ptr + r[:, None] * K + i * B + r[None, :])
            acc = tl.dot(a, tl.load(b_ptr + (i * B + r)[:, None] * B + r[None, :]), acc)
        tl.store(out_ptr + tl.program_id(0) * B * B + r[:, None] * B + r[None, :], acc)
""")


def test_a_check_that_divides_by_the_grid_passes_a_grid_of_nothing(tmp_path):
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "out_ptr": "*fp32", "K": "i32"}
    values = {"a_ptr": tensor(32, 128), "b_ptr": tensor(128, 32), "out_ptr": tensor(32, 32), "K": 128}
    text = validated(tmp_path, SHARED_OUT, launch("k", signature, {"B": 32}, values=values))
    assert "// grid[0]" in text, text
    arguments = dict(a_ptr=Tensor(), b_ptr=Tensor(), out_ptr=Tensor(), K=128, B=32)
    check = check_of(text, "k")
    check(grid=(0,), **arguments | {"K": -1})  # nothing is launched
    with pytest.raises(ValueError, match="K=-1 is negative"):
        check(grid=(1,), **arguments | {"K": -1})


# Options that change numbers --------------------------------------------------------------------------------------------

TUNED = '@triton.autotune([triton.Config({"BLOCK": 64})], key=[])\n'


@pytest.mark.parametrize("default, said", [("0", False), (None, True)])
@pytest.mark.parametrize(
    "decorators", ["", HEURISTICS, MADE_ANEW, TUNED], ids=["global", "heuristics", "wrapped", "tuned"]
)
def test_every_launch_has_the_fusion_that_was_validated(tmp_path, monkeypatch, decorators, default, said):
    """Those of other files too, whatever the Triton that runs them does by itself; one that says it means it."""
    from gluonize.triton_api.jit_functions import JITFunction

    monkeypatch.delenv("TRITON_DEFAULT_FP_FUSION")
    if default:
        monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", default)
    given = []
    monkeypatch.setattr(JITFunction, "run", lambda self, *args, **kwargs: given.append(kwargs["enable_fp_fusion"]))
    text, kernel = shifted(tmp_path, 0, decorators)
    assert f"enable_fp_fusion={said}." in text
    launched = {} if decorators == TUNED else {"BLOCK": 64}
    kernel[(4,)](Tensor(), Tensor(), 200, **launched)
    kernel[(4,)](Tensor(), Tensor(), 200, enable_fp_fusion=not said, **launched)
    kernel.warmup(Tensor(), Tensor(), 200, grid=(4,), **launched)
    assert given == [said, not said, said]


@pytest.mark.parametrize("fallback", [None, "general"])
def test_a_kernel_without_a_check_has_it_too(tmp_path, monkeypatch, fallback):
    from gluonize.triton_api.jit_functions import JITFunction

    given = []
    monkeypatch.setattr(JITFunction, "run", lambda self, *args, **kwargs: given.append(kwargs.get("enable_fp_fusion")))
    source = TWO[: TWO.index("@triton.jit")] + dedent("""
        @triton.jit
        def nothing(x_ptr, B: tl.constexpr):
            tl.static_assert(B == 64)
    """)
    path = tmp_path / "unchecked.py"
    options = {} if fallback is None else {"fallback": fallback}
    path.write_text(translate(tmp_path, source, launch("nothing", {"x_ptr": "*fp32"}, {"B": 64}), **options).text)
    _imported(path).nothing[(1,)](Tensor(), B=64)
    assert given == [True] and "conditions" not in path.read_text()


# The text -----------------------------------------------------------------------------------------------------------------


def test_a_check_of_a_kernel_with_many_arguments_is_given_them_by_name():
    """Where they would take more than two lines."""
    many = tuple(f"an_argument_of_the_kernel_{i}" for i in range(12))
    contract = RunTimeContract(("x_ptr",), ("n",), multiples=many[:1])
    checked = check_for(contract, ("x_ptr", *many, "n", "BLOCK"), ("BLOCK",))
    checked(Tensor(), *[16] * 12, 5, BLOCK=64)
    checked(n=5, x_ptr=Tensor(), **dict.fromkeys(many, 16))
    with pytest.raises(ValueError, match="kernel: n=-1 is negative"):
        checked(Tensor(), *[16] * 12, -1)
    with pytest.raises(ValueError, match="kernel: an_argument_of_the_kernel_0=8 is not a multiple of 16"):
        checked(Tensor(), 8, *[16] * 11, 5)


@pytest.mark.parametrize("name", ["kernel", "a_kernel_with_a_long_name_of_its_own"])
def test_messages_about_several_numbers_have_their_values(name):
    many = tuple(f"stride_{i}" for i in range(9))
    asked = Asked(RunTimeContract((), many, multiples=many), many)
    text = Checks((asked,)).check(name, asked)
    space: dict = {}
    exec(text, space)
    for wrong in (-16, 8):
        with pytest.raises(ValueError, match=rf"^{name}: .*{wrong}"):
            space[f"_check_{name}"](*[16] * 8, wrong)
    assert all(len(line) <= 120 for line in formatted(text).splitlines())


def test_a_signature_that_takes_two_lines_fills_them():
    many = tuple(f"an_argument_{i}" for i in range(10))
    asked = Asked(RunTimeContract((), many), (*many, "BLOCK"))
    text = Checks((asked,)).check("kernel", asked)
    head = text[: text.index("    if ")]
    assert head.endswith("):  # fmt: skip\n") and head.count("\n") <= 4, text
    assert formatted(text) == text + "\n"


@pytest.mark.parametrize("first", ["", "from __future__ import annotations\n", "import os\n", '"""Said."""\n'])
def test_modules_of_python_stand_above_those_of_triton(tmp_path, first):
    text = translate(tmp_path, first + COPY, copy("fp32")).text
    lines = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    found = lines.index("import functools")
    assert lines[found + 1 :][:1] == ["import os"] and text.count("import os\n") == 1, text
    assert all("__future__" in line for line in lines[:found]), text
    _imported_text(tmp_path, text)


def test_a_check_stays_where_assertions_are_left_out(tmp_path):
    text = translate(tmp_path, COPY, copy("fp32")).text
    own = "\n".join(ast.unparse(n) for n in ast.parse(text).body if getattr(n, "name", "").startswith("_check"))
    space: dict = {}
    exec(compile(own, "checks.py", "exec", optimize=2), space)
    with pytest.raises(ValueError, match="2 GiB or more"):
        space["_check_k"](Tensor(2**31), Tensor())


def _imported_text(tmp_path, text):
    path = tmp_path / "written.py"
    path.write_text(text)
    return _imported(path)
