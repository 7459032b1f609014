"""Several launches of one kernel: when they are one text, one kernel with chosen layouts, or several behind one name."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from gluonize.diagnostics import TranslationError
from gluonize.gluon.trees.function import parsed
from gluonize.judge.verdict import validate_launch
from gluonize.output.merging.one_text import Variant, one_text
from gluonize.write.contracts import contracts
from gluonize.write.contracts.configuration import Configuration, Key
from gluonize.write.function.merge import merge as merged_functions
from gluonize.write.function.merge import name_of
from slow_rows import slow_but
from translation_of import TARGET, TWICE_AND_THRICE, compiled, dedent, launch, tensor, translate, validated

HEAD = "import triton\nimport triton.language as tl\n\n\n"
COPY = HEAD + dedent("""
    @triton.jit
    def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)
    """)
DOT = HEAD + dedent("""
    @triton.jit
    def k(x_ptr, y_ptr, M: tl.constexpr, GROUP: tl.constexpr):
        rows, cols = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
        x = tl.load(x_ptr + rows * M + cols)
        tl.store(y_ptr + rows * M + cols, tl.dot(x, x) * GROUP)
    """)
BRANCH = HEAD + dedent("""
    @triton.jit
    def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr, DOUBLE: tl.constexpr):
        offs = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < n)
        if DOUBLE:
            # twice
            x = x * 2
        tl.store(y_ptr + offs, x, mask=offs < n)
    """)


TRIPS = HEAD + dedent("""
    @triton.jit
    def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr, MORE: tl.constexpr):
        offs = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < n)
        for j in range(MORE // 2):
            x += tl.load(y_ptr + offs, mask=offs < n)
        tl.store(y_ptr + offs, x, mask=offs < n)
    """)


def copy(kind: str, block: int = 1024, warps: int = 4, **options):
    signature = {"x_ptr": f"*{kind}", "y_ptr": f"*{kind}", "n": "i32"}
    return launch("k", signature, {"BLOCK": block}, f"{kind}-{block}-{warps}", warps=warps, **options)


def dot(kind: str, size: int = 64, warps: int = 4, group: int = 1):
    signature = {"x_ptr": f"*{kind}", "y_ptr": "*fp32"}
    return launch("k", signature, {"M": size, "GROUP": group}, f"{kind}-{size}-{warps}", warps=warps)


def branch(double: bool):
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
    return launch("k", signature, {"BLOCK": 256, "DOUBLE": double}, f"double-{double}")


def refusal(folder, text, spec) -> str:
    """The message with which compiling a translation for a launch ends."""
    with pytest.raises(TranslationError) as caught:
        compiled(folder, text, spec)
    return " ".join(f"{d.message} {d.why}" for d in caught.value.diagnostics)


def kernels(text: str) -> list[str]:
    return [name for name in re.findall(r"^def (\w+)\(", text, re.M) if name != "_assume"]


def test_launches_with_one_text_are_one_kernel(tmp_path):
    text = translate(tmp_path, COPY, copy("fp32"), copy("i32")).text
    assert kernels(text) == ["k"]


def test_layouts_that_differ_are_chosen_where_they_are_defined(tmp_path):
    launches = copy("fp32"), copy("fp32", warps=8)
    text = translate(tmp_path, COPY, *launches).text
    assert kernels(text) == ["k"]
    assert "[4] if gl.num_warps() == 4 else [8]" in text
    for spec in launches:
        assert compiled(tmp_path, text, spec).metrics is not None
    assert "k asserts gl.num_warps() == 4 or gl.num_warps() == 8" in refusal(tmp_path, text, copy("fp32", warps=2))


def test_pointers_of_one_type_are_asserted_once(tmp_path):
    text = translate(tmp_path, COPY, copy("fp32"), copy("i32")).text
    # The type of x_ptr is left open, but for elements of one bit: only the store needs that of y_ptr.
    assert text.count("y_ptr.dtype.element_ty == gl.") == 2 and text.count("x_ptr.dtype") == 1
    source = COPY.replace(
        "tl.load(x_ptr + offs, mask=offs < n)", "tl.load(x_ptr + offs, mask=offs < n) + tl.load(y_ptr + offs)"
    )
    text = translate(tmp_path, source, copy("fp32", warps=8), copy("fp16")).text
    assert "k is not translated for this x_ptr and num_warps" in refusal(tmp_path, text, copy("bf16"))


THROUGH_HELPERS = HEAD + dedent("""
    @triton.jit
    def read(from_ptr, BLOCK: tl.constexpr):
        return tl.load(from_ptr + tl.arange(0, BLOCK))

    @triton.jit
    def k(x_ptr, y_ptr, flag_ptr, n, BLOCK: tl.constexpr):
        offs = tl.arange(0, BLOCK)
        value = read(x_ptr, BLOCK) * 2
        if tl.load(flag_ptr) != 0:
            tl.store(y_ptr + offs, value.to(y_ptr.dtype.element_ty), mask=offs < n)
    """)


@pytest.mark.parametrize(
    "source",
    [COPY.replace("mask=offs < n)", "mask=offs < n).to(tl.float32).to(y_ptr.dtype.element_ty)", 1), THROUGH_HELPERS],
)
@pytest.mark.parametrize("name", ["x_ptr", "y_ptr"])
def test_elements_of_one_bit_are_refused_where_the_compiler_would_die_of_them(tmp_path, source, name):
    kinds = {"x_ptr": "*fp32", "y_ptr": "*fp32", "flag_ptr": "*i32", "n": "i32"}
    kinds = {n: kind for n, kind in kinds.items() if n in source}
    text = translate(tmp_path, source, launch("k", kinds, {"BLOCK": 256})).text
    assert "k asserts x_ptr.dtype.element_ty != gl.int1 and y_ptr.dtype.element_ty != gl.int1" in refusal(
        tmp_path, text, launch("k", kinds | {name: "*i1"}, {"BLOCK": 256})
    )
    # What is read as a scalar may be of one bit.
    other = kinds | {name: "*fp16"} | ({"flag_ptr": "*i1"} if "flag_ptr" in kinds else {})
    assert compiled(tmp_path, text, launch("k", other, {"BLOCK": 256})).metrics is not None


def test_a_launch_with_elements_of_one_bit_is_translated_for(tmp_path):
    bits = launch("k", {"x_ptr": "*i1", "y_ptr": "*fp32", "n": "i32"}, {"BLOCK": 1024}, "bits")
    source = COPY.replace("mask=offs < n)", "mask=offs < n).to(tl.float32)", 1)
    text = translate(tmp_path, source, copy("fp32"), bits).text
    assert "not translated for bool" not in text
    assert compiled(tmp_path, text, bits).metrics is not None


def test_types_that_pointers_share_are_asserted_in_one_statement():
    def typed(x: str, y: str, z: str) -> Configuration:
        return {Key("element", name): kind for name, kind in zip("xyz", (x, y, z))}

    needed = contracts.Needs(True, frozenset(), True)
    one, same = contracts.assertions("k", needed, [typed("fp16", "fp16", "fp16"), typed("bf16", "bf16", "bf16")])
    assert one == "gl.static_assert(x.dtype.element_ty == gl.float16 or x.dtype.element_ty == gl.bfloat16)"
    assert (
        same
        == "gl.static_assert(y.dtype.element_ty == x.dtype.element_ty and z.dtype.element_ty == x.dtype.element_ty)"
    )
    apart = contracts.assertions("k", needed, [typed("fp16", "fp16", "fp32"), typed("bf16", "bf16", "fp16")])
    assert len(apart) == 2 and apart[1] == "gl.static_assert(y.dtype.element_ty == x.dtype.element_ty)"


def test_an_assertion_has_as_many_conditions_as_a_line():
    """Triton shows the line on which a statement begins, and needs no message then."""
    names = [f"pointer_{i}" for i in range(9)]
    launched = {Key("element", name): "fp16" for name in names} | {Key("num_warps", "num_warps"): 4}
    warps, *types = contracts.assertions("k", contracts.Needs(True, frozenset(), True), [launched])
    assert warps == "gl.static_assert(gl.num_warps() == 4)"
    assert all(len(line) <= 116 for line in types) and all(" ".join(types).count(f"{n}.dtype") == 1 for n in names)


def test_texts_that_differ_in_parts_are_one_kernel(tmp_path):
    launches = dot("fp16"), dot("fp16", 128, 8)
    text = translate(tmp_path, DOT, *launches).text
    assert kernels(text) == ["k"]
    for spec in launches:
        assert compiled(tmp_path, text, spec).metrics is not None
    assert "k asserts M == 64 and gl.num_warps() == 4 or" in refusal(tmp_path, text, dot("fp16", 32))


def test_texts_with_little_in_common_are_behind_a_dispatcher():
    """Each in a function of its own, which a public kernel calls."""
    texts = ["".join(f"    {name}{i} = {name}(x_ptr, {i})\n" for i in range(20)) for name in ("sin", "cos")]
    served = [({Key("constexpr", "UP"): up},) for up in (True, False)]
    variants = [Variant(parsed(f"def k(x_ptr, UP):\n{text}"), c) for text, c in zip(texts, served)]
    assert one_text(variants) is None
    assert (
        one_text([replace(v, function=parsed("def k(x_ptr, UP):\n    y = sin(x_ptr)\n")) for v in variants]) is not None
    )


def test_a_branch_that_one_launch_takes_is_in_the_one_kernel(tmp_path):
    text = translate(tmp_path, BRANCH, branch(False), branch(True)).text
    assert kernels(text) == ["k"] and "# twice" in text and "no translated launch" not in text
    for double in (False, True):
        assert compiled(tmp_path, text, branch(double)).metrics is not None


def test_a_branch_that_no_launch_takes_is_refused_by_name(tmp_path):
    text = translate(tmp_path, BRANCH, branch(False)).text
    assert "k: `DOUBLE` was in no translated launch" in refusal(tmp_path, text, branch(True))


def test_an_arm_of_shapes_that_no_launch_takes_is_kept(tmp_path):
    """It is arithmetic on what Gluon has too; a call of anything else is refused."""
    axis = "axis: tl.constexpr = {} - 1 if DOUBLE else 0\n    tl.static_assert(axis == 0)\n    offs ="
    source = BRANCH.replace("offs =", axis.format("len(x_ptr.type.shape)"))
    assert translate(tmp_path, source, branch(False)).text.count("in no translated launch") == 2
    source = BRANCH.replace(
        "offs = tl.arange(0, BLOCK)", "offs = tl.arange(0, BLOCK)\n    " + axis.format("len(offs.shape)") + " offs"
    )
    text = translate(tmp_path, source, branch(False)).text
    assert "axis: gl.constexpr = len(offs.shape) - 1 if DOUBLE else 0" in text
    assert text.count("in no translated launch") == 1  # what doubles
    compiled(tmp_path, text, branch(False))


def test_a_loop_that_has_no_trip_in_any_launch_is_refused_by_name(tmp_path):
    def loop(more: int):
        signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
        return launch("k", signature, {"BLOCK": 256, "MORE": more}, f"more-{more}")

    text = translate(tmp_path, TRIPS, loop(0), loop(1)).text
    assert compiled(tmp_path, text, loop(1)).metrics is not None
    told = "k: `for j in range(MORE // 2)` has no trip in any translated launch"
    assert told in refusal(tmp_path, text, loop(2))
    for launches in ((loop(0), loop(4)), (loop(4), loop(0))):
        text = translate(tmp_path, TRIPS, *launches).text
        assert kernels(text) == ["k"] and "no trip" not in text
        assert compiled(tmp_path, text, loop(2)).metrics is not None


def test_number_of_warps_is_asserted_where_there_are_layouts(tmp_path):
    text = translate(tmp_path, COPY, copy("fp32")).text
    assert "k asserts gl.num_warps() == 4" in refusal(tmp_path, text, copy("fp32", warps=8))


def test_blocked_layouts_leave_tile_size_open(tmp_path):
    text = translate(tmp_path, COPY, copy("fp32")).text
    assert compiled(tmp_path, text, copy("fp32", 512)).metrics is not None


def test_types_that_nothing_relies_on_stay_open(tmp_path):
    source = COPY.replace("mask=offs < n), mask", "mask=offs < n).to(tl.float32), mask")
    signature = {"x_ptr": "*fp16", "y_ptr": "*fp32", "n": "i32"}
    text = translate(tmp_path, source, launch("k", signature, {"BLOCK": 1024})).text
    assert compiled(tmp_path, text, launch("k", signature | {"x_ptr": "*fp32"}, {"BLOCK": 1024})).metrics is not None


def test_a_store_without_a_cast_pins_the_type_of_its_pointer(tmp_path):
    text = translate(tmp_path, COPY, copy("fp32")).text
    other = launch("k", {"x_ptr": "*fp32", "y_ptr": "*fp16", "n": "i32"}, {"BLOCK": 1024})
    assert "k asserts y_ptr.dtype.element_ty == gl.float32" in refusal(tmp_path, text, other)


@pytest.mark.parametrize(
    "spec, message",
    [
        (dot("fp16", 32), "k asserts gl.num_warps() == 4 and M == 64"),
        (dot("bf16"), "k asserts x_ptr.dtype.element_ty == gl.float16"),
    ],
    ids=["tile", "type"],
)
def test_matrix_layouts_pin_tile_size_and_type(tmp_path, spec, message):
    text = translate(tmp_path, DOT, dot("fp16")).text
    assert message in refusal(tmp_path, text, spec)


def test_values_that_shape_nothing_stay_open(tmp_path):
    text = translate(tmp_path, DOT, dot("fp16")).text
    assert compiled(tmp_path, text, dot("fp16", group=5)).metrics is not None


UNALIGNED = launch("k", {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}, {"BLOCK": 1024}, "unaligned", attrs={})


@pytest.mark.parametrize("first", ["aligned", "unaligned"])
def test_one_text_rests_on_what_all_its_launches_have(tmp_path, first):
    """Device code does not see alignment: whichever launch comes first, the text is that of the unaligned one."""
    specs = [copy("fp32"), UNALIGNED] if first == "aligned" else [UNALIGNED, copy("fp32")]
    result = translate(tmp_path, COPY, *specs)
    (note,) = [note for note in result.notes if "cannot tell" in note]
    assert "rests on nothing that x_ptr, y_ptr has in some of them only" in note
    own = translate(tmp_path, COPY, UNALIGNED)
    assert result.text.partition("@gluon.jit")[2] == own.text.partition("@gluon.jit")[2]
    assert (
        own.text.partition("@gluon.jit")[2] != translate(tmp_path, COPY, copy("fp32")).text.partition("@gluon.jit")[2]
    )


def test_types_of_numbers_are_told_apart(tmp_path):
    """Also where one of them is 1, which is compiled as a constant."""
    plain = loop(64, 64, 64, 4, 2)
    wide = replace(plain, id="wide", signature=plain.signature | {"row": "i64"})
    text = translate(tmp_path, LOOP, plain, wide, target="gfx942").text
    assert "gl.to_tensor(row).dtype == gl.int" in text
    one = replace(
        plain, id="one", signature=plain.signature | {"K": "constexpr"}, constexprs=plain.constexprs | {"K": 1}
    )
    one = replace(one, attrs={name: flags for name, flags in one.attrs.items() if name != "row"})
    for spec in (plain, wide, one):
        assert compiled(tmp_path, text, spec, "gfx942").metrics is not None


def test_a_stride_that_is_1_in_some_launches_is_any_stride(tmp_path):
    source = COPY.replace("BLOCK: tl", "s, BLOCK: tl").replace("x_ptr + offs", "x_ptr + offs * s")
    specs = []
    for ident, stride, attrs in (("one", 1, {}), ("more", 16, {"s": "D"})):
        kind = "constexpr" if stride == 1 else "i32"
        constexprs = {"BLOCK": 1024} | ({"s": 1} if stride == 1 else {})
        signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "s": kind}
        specs.append(launch("k", signature, constexprs, ident, attrs=attrs))
    for order in (specs, specs[::-1]):
        result = translate(tmp_path, source, *order)
        assert "divisible by 16" not in result.text
        for spec in order:
            assert compiled(tmp_path, result.text, spec).metrics is not None


# Merging, on text alone ------------------------------------------------------------------------------------------------

REFUSED = 'gl.static_assert(False, "k: `C` was in no translated launch")'


def function(body: str, layout: str = "") -> str:
    top = f"    layout: gl.constexpr = gl.BlockedLayout([{layout}], [64], [4], [0])\n\n" if layout else ""
    return f"def k(C):\n{top}{body}"


TAKEN = "    if C:\n        # why\n        x = 1\n        y = 2\n    z = 3\n"
LEFT = f"    if C:\n        {REFUSED}\n    z = 3\n"


def merge(a: str, b: str) -> str | None:
    both = merged_functions(parsed(a), parsed(b))
    return both and both.text


def test_layout_constants_are_told_from_the_body():
    names = {
        "mma": "gl.amd.AMDMFMALayout(version=4)",
        "a": "gl.PaddedSharedLayout.with_identity_for([[8, 8]], [8, 8], [1, 0])",
        "b": "gl.BlockedLayout(\n        [1],\n        [64],\n    )",
    }
    text = function(
        "".join(f"    # {n}\n    {n}: gl.constexpr = {v}\n" for n, v in names.items())
        + "\n    N: gl.constexpr = f(C)\n"
    )
    found = parsed(text)
    assert [name_of(s) for s in found.constants] == ["mma", "a", "b"] and found.text == text
    assert found.plain.text == function("\n    N: gl.constexpr = f(C)\n")


@pytest.mark.parametrize("order", [1, -1], ids=["forward", "backward"])
def test_merge_takes_the_branch_that_is_there(order):
    a, b = [function(TAKEN), function(LEFT)][::order]
    assert "x = 1\n        y = 2\n    z = 3" in merge(a, b) and REFUSED not in merge(a, b)


@pytest.mark.parametrize("order", [1, -1], ids=["forward", "backward"])
def test_merge_of_elif_and_else(order):
    chain = f"    if C:\n        {REFUSED}\n    elif D:\n        x = 2\n"
    a, b = [function(chain), function(f"    if C:\n        x = 1\n    else:\n        {REFUSED}\n")][::order]
    assert merge(a, b) == function("    if C:\n        x = 1\n    elif D:\n        x = 2\n")


def test_merge_of_arms_of_a_conditional_expression():
    call = REFUSED
    left = function(f"    x = f(a) if C else {call}\n")
    right = function(f"    x = (\n        {call}\n        if C\n        else g(a)\n    )\n")
    both = merge(left, right), merge(right, left)
    assert [" ".join(text.split()) for text in both] == [
        "def k(C): x = f(a) if C else g(a)",
        "def k(C): x = ( f(a) if C else g(a) )",
    ]
    assert merge(left, right.replace("g(a)", "g(a)\n    ) + (1")) is None


def test_merge_of_code_after_a_constant_return():
    left = function(f"    if C:\n        return\n    {REFUSED}\n")
    right = function("    if C:\n        return\n    x = 1\n    y = 2\n")
    assert merge(left, right) == right == merge(right, left)


def test_merge_keeps_the_layouts_of_both():
    joined = merge(function(LEFT), function(TAKEN, "8"))
    assert "gl.BlockedLayout([8]" in joined and "x = 1" in joined


@pytest.mark.parametrize(
    "a, b",
    [
        (function(TAKEN), function(TAKEN.replace("z = 3", "z = 4"))),
        (function(TAKEN), function(LEFT.replace("if C", "if D"))),
        (function(TAKEN, "4"), function(TAKEN, "8")),
        (function(TAKEN), function(LEFT.replace("    z = 3\n", ""))),
        (function("    x = y.to(p.dtype.element_ty)\n"), function("    x = y.to(gl.float32)\n")),
    ],
    ids=["statement", "condition", "layout", "missing", "cast"],
)
def test_merge_refuses_other_differences(a, b):
    assert merge(a, b) is None and merge(b, a) is None


def test_merge_takes_the_cast_to_the_pointers_type():
    a, b = (function(f"    gl.store(p, {x})\n") for x in ("x", "x.to(p.dtype.element_ty)"))
    assert merge(a, b) == merge(b, a) == b


def test_a_renamed_helper_leaves_a_parameter_or_variable_of_its_name_alone():
    text = "def f(flip, x):\n    sort = flip + x\n    return order(sort, flip)\n"
    renamed = parsed(text).renaming({"flip": "flip_2", "sort": "sort_2", "order": "order_2"})
    assert renamed.text == text.replace("order", "order_2")


LOOP = HEAD + dedent("""
    @triton.jit
    def k(a_ptr, b_ptr, c_ptr, K, row, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        m, n, offs_k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
        a_ptrs = a_ptr + m[:, None] * row + offs_k[None, :]
        b_ptrs = b_ptr + offs_k[:, None] * row + n[None, :]
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for i in range(0, tl.cdiv(K, BK)):
            a = tl.load(a_ptrs, mask=offs_k[None, :] < K - i * BK, other=0.0)
            b = tl.load(b_ptrs, mask=offs_k[:, None] < K - i * BK, other=0.0)
            acc = tl.dot(a, b, acc)
            a_ptrs += BK
            b_ptrs += BK * row
        tl.store(c_ptr + m[:, None] * row + n[None, :], acc)
    """)


def loop(m: int, n: int, k: int, warps: int, stages: int):
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "K": "i32", "row": "i32"}
    attrs = {"a_ptr": "DS", "b_ptr": "DS", "c_ptr": "DS", "K": "D", "row": "D"}
    return launch("k", signature, {"BM": m, "BN": n, "BK": k}, f"{m}-{n}-{k}", attrs, warps, stages)


# Tiles of one and of two loads per lane: alone, the first moves its offsets and the others their bases.
LOOPS = loop(128, 128, 32, 8, 3), loop(64, 64, 64, 4, 2), loop(128, 64, 64, 4, 3)


def test_launches_that_differ_in_stages_alone_share_the_translation_of_the_first(tmp_path):
    two, three = loop(64, 64, 64, 4, 2), replace(loop(64, 64, 64, 4, 3), id="three")
    result = translate(tmp_path, LOOP, two, three, target="gfx950")
    assert any(f"cannot tell {three.id} from earlier" in note for note in result.notes)
    first, second = (line for line in result.text.splitlines() if line.startswith("# k: 4 warps"))
    assert "num_stages=2" in first and "num_stages=3" in second
    assert result.text.count("runs as an earlier launch") == 1, result.text
    assert result.text.index("runs as an earlier launch") > result.text.rindex("# k: 4 warps")
    assert compiled(tmp_path, result.text, three, "gfx950").metrics is not None


def test_launches_behind_one_that_cannot_be_told_keep_their_translation(tmp_path):
    two, three = loop(64, 64, 64, 4, 2), replace(loop(64, 64, 64, 4, 3), id="three")
    other = replace(loop(64, 64, 64, 8, 2), id="other")
    result = translate(tmp_path, LOOP, two, three, other, target="gfx950")
    (note,) = [note for note in result.notes if "cannot tell" in note]
    assert f"cannot tell {three.id} from" in note
    assert compiled(tmp_path, result.text, other, "gfx950").metrics is not None


@pytest.mark.parametrize("target", slow_but(["gfx950", "gfx1100"]))
def test_configurations_of_a_pipelined_loop_are_one_kernel(target, tmp_path):
    text = translate(tmp_path, LOOP, *LOOPS, target=target).text
    assert [name for name in kernels(text) if name not in ("previous_slot", "direct_copy", "transposed_in_lanes")] == [
        "k"
    ]
    assert text.count("def previous_slot(") == (target == "gfx950")
    assert "[NUM_BUFFERS, BM, BK]" in text and "[NUM_BUFFERS, BK, BN]" in text
    assert re.findall(r"NUM_BUFFERS: gl.constexpr = (.*)", text) == [
        "2 if BM == 64 else 3" if target == "gfx950" else "1 if BM == 64 else 2"
    ]
    assert text.count("a_base += BK") == 2 and "a_offs +=" not in text
    for spec in LOOPS:
        assert compiled(tmp_path, text, spec, target=target).metrics is not None


def test_layouts_of_one_configuration_are_not_taken_for_another(tmp_path):
    text = translate(tmp_path, LOOP, *LOOPS).text
    assert "k is not translated for this BM, BN, BK and num_warps" in refusal(tmp_path, text, loop(128, 128, 64, 4, 3))


def test_one_configuration_keeps_its_own_choice(tmp_path):
    alone = translate(tmp_path, LOOP, LOOPS[0], target="gfx950").text
    assert "a_offs +=" in alone and "NUM_BUFFERS: gl.constexpr = 3" in alone


def test_configurations_that_differ_in_more_are_one_kernel_too(tmp_path):
    # gfx942 transposes B in registers for some tiles only.
    launches = (*LOOPS, loop(64, 128, 32, 8, 3))
    text = translate(tmp_path, LOOP, *launches).text
    assert [name for name in kernels(text) if name != "transposed_in_lanes"] == ["k"]
    for spec in launches:
        assert compiled(tmp_path, text, spec).metrics is not None
    assert "is not translated for this" in refusal(tmp_path, text, loop(128, 128, 64, 4, 3))


CALLS = HEAD + TWICE_AND_THRICE + dedent("""
    @triton.jit
    def k(x_ptr, y_ptr, n, ACT: tl.constexpr, BLOCK: tl.constexpr):
        offs = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < n)
        if ACT is not None:
            x = ACT(x)
        tl.store(y_ptr + offs, x, mask=offs < n)
    """)


def calling(function: str, block: int = 256):
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
    given = {"$jit": f"source:{function}"} if function else None
    return launch("k", signature, {"ACT": given, "BLOCK": block}, f"{function}-{block}")


def test_a_function_that_no_launch_gives_is_refused_by_name(tmp_path):
    """The text has what the function of the launch does: with another one it would compute something else."""
    text = validated(tmp_path, CALLS, calling("twice"))
    assert "ACT=twice, BLOCK=256" in text
    assert compiled(tmp_path, text, calling("twice")).metrics is not None
    for other in ("thrice", ""):
        assert "ACT is not None and (ACT.__name__ == 'twice')" in refusal(tmp_path, text, calling(other))
    without = translate(tmp_path, CALLS, calling("")).text
    assert "`ACT is not None` was in no translated launch" in refusal(tmp_path, without, calling("twice"))


def test_functions_of_launches_are_told_apart(tmp_path):
    launches = calling("twice"), calling("thrice"), calling("thrice", 512), calling("")
    text = translate(tmp_path, CALLS, *launches).text
    for spec in launches:
        compiled(tmp_path, text, spec)
        answer = validate_launch(str(tmp_path / "source.py"), str(tmp_path / "output.py"), spec, TARGET)
        assert answer["status"] == "validated"


TYPED = HEAD + dedent("""
    @triton.jit
    def k(x_ptr, y_ptr, KIND: tl.constexpr, SHAPE: tl.constexpr):
        offs = tl.arange(0, SHAPE[0])[:, None] * SHAPE[1] + tl.arange(0, SHAPE[1])[None, :]
        x = tl.load(x_ptr + offs).to(KIND)
        tl.store(y_ptr + offs, tl.dot(x, x))
    """)


@pytest.mark.parametrize(
    "kind, shape, words", [("fp32", [32, 32], "KIND == gl.float16"), ("fp16", [64, 64], "SHAPE == (32, 32)")]
)
def test_a_type_or_a_tuple_that_no_launch_gives_is_refused_by_name(tmp_path, kind, shape, words):
    def typed(kind: str, shape: list[int]):
        given = {"KIND": {"$dtype": kind}, "SHAPE": {"$tuple": shape}}
        return launch("k", {"x_ptr": "*i8", "y_ptr": "*fp32"}, given)

    text = validated(tmp_path, TYPED, typed("fp16", [32, 32]))
    assert words in refusal(tmp_path, text, typed(kind, shape))


SEVERAL = CALLS.replace("ACT: tl.constexpr", "ACTS: tl.constexpr").replace(
    "    if ACT is not None:\n        x = ACT(x)\n", "    for i in tl.static_range(len(ACTS)):\n        x = CALLED\n"
).replace("@triton.jit\ndef k", dedent("""
    @triton.jit
    def applied(f, x):
        return f(x)


    @triton.jit
    def all_of(fs: tl.constexpr, x):
        for i in tl.static_range(len(fs)):
            x = applied(fs[i], x)
        return x


    @triton.jit
    def k"""))  # fmt: skip


def several(*functions: str):
    given = {"$tuple": [{"$jit": f"source:{f}"} for f in functions]}
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
    return launch("k", signature, {"ACTS": given, "BLOCK": 256}, "-".join(functions))


@pytest.mark.parametrize("called", slow_but(["all_of(ACTS, x)", "ACTS[i](x)", "applied(ACTS[i], x)"]))
def test_each_function_of_a_tuple_is_called(tmp_path, called):
    """In one iteration the one, in the next the other: no one body serves both."""
    text = validated(tmp_path, SEVERAL.replace("CALLED", called), several("twice", "thrice"))
    assert "twice(x)" in text and "thrice(x)" in text
    for other in (("thrice", "twice"), ("twice",)):
        assert "k asserts len(ACTS) == 2 and ACTS[0] is not None and (ACTS[0].__name__ == 'twice')" in refusal(
            tmp_path, text, several(*other)
        )


def test_iterations_that_call_the_same_stay_a_loop(tmp_path):
    text = validated(tmp_path, SEVERAL.replace("CALLED", "ACTS[i](x)"), several("twice", "twice"))
    assert "for i in gl.static_range(len(ACTS)):\n        x = twice(x)\n" in text


FLAGGED = HEAD + dedent("""
    @triton.jit
    def k(a_ptr, b_ptr, s_ptr, y_ptr, K, SCALED: tl.constexpr, B: tl.constexpr):
        o, n = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, K, B):
            a = tl.load(a_ptr + o * K + k + n)
            b = tl.load(b_ptr + (k + o) * B + n)
            SIDE
            acc += tl.dot(a, b)
        tl.store(y_ptr + o * B + n, acc)
    """)
SIDES = [
    "if SCALED:\n                s = tl.load(s_ptr + (k + o) * B + n)\n                b = (b * s).to(tl.float16)",
    "b = (b * (tl.load(s_ptr + (k + o) * B + n) if SCALED else 1)).to(tl.float16)",
]


@pytest.mark.parametrize("target", slow_but(["gfx950", "gfx1250"]))
@pytest.mark.parametrize("side", SIDES, ids=["statement", "expression"])
def test_a_pipelined_loop_is_refused_without_the_loads_of_a_flag(tmp_path, side, target):
    """Its waits count the copies of a body that has them."""

    def flagged(scaled: bool):
        signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "s_ptr": "*fp16", "y_ptr": "*fp32", "K": "i32"}
        values = dict.fromkeys(("a_ptr", "b_ptr", "s_ptr"), tensor(256, 64)) | {"y_ptr": tensor(64, 64), "K": 256}
        return launch("k", signature, {"SCALED": scaled, "B": 64}, f"k-{scaled}", stages=3, values=values)

    text = validated(tmp_path, FLAGGED.replace("SIDE", side), flagged(True), target)
    assert "s_smem" in text or side == SIDES[1]
    with pytest.raises(TranslationError, match="in no translated launch"):
        compiled(tmp_path, text, flagged(False), target)


AROUND = HEAD + dedent("""
    @triton.jit
    def k(a_ptr, y_ptr, K, MORE: tl.constexpr, B: tl.constexpr):
        o, n = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
        acc = tl.zeros((B, B), tl.float32)
        p = a_ptr + o * K + n
        if MORE:
            for k in range(0, K, B):
                a = tl.load(p)
                p += B
                acc = tl.dot(a, tl.trans(a), acc)
        tl.store(y_ptr + o * B + n, acc)
    """)


@pytest.mark.parametrize("target", ["gfx950", "gfx1250"])
def test_a_flag_may_end_with_a_pipelined_loop(tmp_path, target):
    """What is written behind the loop's body stands before the other side."""
    signature = {"a_ptr": "*bf16", "y_ptr": "*fp32", "K": "i32"}
    values = {"a_ptr": tensor(16, 64), "y_ptr": tensor(16, 16), "K": 64}
    spec = launch("k", signature, {"MORE": True, "B": 16}, stages=2, values=values)
    text = validated(tmp_path, AROUND, spec, target)
    assert text.index("for k in range(0, K, B)") < text.index("    else:\n") < text.rindex("store(")
