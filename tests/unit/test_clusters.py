"""Programs of several workgroups: their layouts, what of them is translated, and what is refused where."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_sources import SOURCES
from translation_of import compiled, dedent, launch, tensor, translate, validated
from triton.experimental.gluon import language as gl

from gluonize.decide.layouts.constructors import constructor
from gluonize.decide.layouts.inferred import from_gluon, infer, to_gluon
from gluonize.judge.cycles.code.assembly import read_program
from gluonize.judge.cycles.code.executed_paths import Step
from gluonize.judge.cycles.code.stream import ARRIVE, ISSUE, MEET, Translator
from gluonize.judge.machine.memory.cluster import holders
from gluonize.judge.machine.stages import translated_stage
from gluonize.product.report.layouts.job import drawn_layouts
from gluonize.request import TranslateRequest
from gluonize.rules.targets import target as target_row
from gluonize.rules.timing import TIMINGS
from gluonize.trace.model.attributes import parse_attribute
from gluonize.trace.model.cta_parts import stays, within
from gluonize.trace.model.layouts import AttributeReader, Blocked, DotOperand, Linear, Slice, Wmma, part_of
from gluonize.trace.model.shared_layouts import Padded, SharedLinear, Swizzled, read_shared, slots_bytes
from gluonize.trace.passes.cluster_rows import column_bits, rows_instead, without_bits
from gluonize.translation import translate_kernel

ROWS, COLUMNS, WHOLE = ((1, 0),), ((0, 1),), ((0, 0),)
BLOCKED = Blocked((1, 8), (4, 8), (4, 1), (1, 0), ROWS)
WMMA = Wmma(3, True, ((0, 1), (1, 0)), (), (16, 16, 32), ctas=((0, 1), (1, 0)))
SHARED = [
    Swizzled(8, 1, 8, (1, 0), ROWS),
    Padded(((128, 8),), (), (1, 0), (128, 64), WHOLE),
    Padded(((128, 8),), ((0, 1), (1, 0)), (), (2, 4), COLUMNS),
    SharedLinear(((0, 1), (1, 0)), ((2, 0),)),
]

ADD = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def k(x_ptr, y_ptr, n, B: tl.constexpr):
        o = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y_ptr + o, tl.load(x_ptr + o, o < n) * 2, o < n)
""")
SOFTMAX = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def k(x_ptr, y_ptr, R: tl.constexpr, B: tl.constexpr):
        r = tl.program_id(0) * R + tl.arange(0, R)
        c = tl.arange(0, B)
        x = tl.load(x_ptr + r[:, None] * B + c[None, :])
        e = tl.exp(x - tl.max(x, 1)[:, None])
        tl.store(y_ptr + r[:, None] * B + c[None, :], e / tl.sum(e, 1)[:, None])
""")


def clustered(count: int, constexprs: dict, values: dict, signature: dict | None = None):
    spec = launch("k", signature or {"x_ptr": "*fp32", "y_ptr": "*fp32"}, constexprs, values=values)
    spec.options["num_ctas"] = count
    return spec


@pytest.mark.parametrize("layout", [BLOCKED, WMMA, Slice(1, BLOCKED), DotOperand(1, WMMA, 8)], ids=str)
def test_layouts_are_written_as_gluon_has_them(layout):
    made = to_gluon(layout)
    assert from_gluon(made) == layout
    assert tuple(map(tuple, made.cga_layout)) == layout.ctas


@pytest.mark.parametrize("shared", SHARED, ids=str)
def test_tiles_are_written_as_gluon_has_them(shared):
    made = eval(shared.spelled(), {"gl": gl})
    bases = made.block_bases if isinstance(shared, SharedLinear) else made.cga_layout
    assert tuple(map(tuple, bases)) == (shared.block if isinstance(shared, SharedLinear) else shared.ctas)


def test_operands_have_all_of_k():
    assert DotOperand(0, WMMA, 8).ctas == ((0, 0), (1, 0))
    assert DotOperand(1, WMMA, 8).ctas == ((0, 1), (0, 0))


def test_layouts_are_read_from_triton():
    reader = AttributeReader({})
    text = "sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]"
    assert reader.layout(f"#ttg.blocked<{{{text}}}>") == BLOCKED
    text = "version = 3, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}, CGALayout = [[0, 1], [1, 0]]"
    assert reader.layout(f"#ttg.amd_wmma<{{{text}, instrShape = [16, 16, 32]}}>") == WMMA
    linear = reader.layout("#ttg.linear<{register = [[0, 1]], lane = [[1, 0]], warp = [], block = [[2, 0]]}>")
    assert linear == Linear(((0, 1),), ((1, 0),), (), ((2, 0),), (4, 2)) and linear.ctas == ROWS


def test_tiles_are_read_from_triton():
    swizzled = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0], CGALayout = [[1, 0]]}>"
    assert read_shared(parse_attribute(swizzled), (128, 64)) == SHARED[0]
    bases = "[0, 1], [0, 2], [1, 0], [2, 0]"
    rows = read_shared(parse_attribute(f"#ttg.padded_shared<[4:+2] {{offset = [{bases}], block = [[0, 4]]}}>"), (4, 8))
    assert rows == Padded(((4, 2),), (), (1, 0), (4, 8), COLUMNS)
    mixed = "[1, 0], [0, 1], [0, 2], [2, 0]"
    mixed_up = read_shared(
        parse_attribute(f"#ttg.padded_shared<[4:+2] {{offset = [{mixed}], block = [[0, 0]]}}>"), (4, 4)
    )
    assert mixed_up == Padded(((4, 2),), ((1, 0), (0, 1), (0, 2), (2, 0)), (), (4, 4), WHOLE)


def test_each_cta_has_its_part_in_its_own_lds():
    assert part_of((128, 64), ((0, 1), (1, 0))) == (64, 32) and part_of((1, 64), ROWS) == (1, 64)
    assert slots_bytes(Swizzled(1, 1, 1, (1, 0), ROWS), (128, 64), 16, 2) == 2 * 64 * 64 * 2
    assert slots_bytes(Padded(((128, 8),), (), (1, 0), (128, 64), WHOLE), (128, 64), 16, 1) == (8192 + 63 * 8) * 2


@pytest.mark.parametrize(
    "held, wanted, stay",
    [(ROWS, ROWS, True), (WHOLE, ROWS, True), (ROWS, WHOLE, False), (ROWS, COLUMNS, False),
     (((1, 0), (0, 0)), ((1, 0), (0, 1)), True), (((1, 0), (0, 0)), ((2, 0), (1, 0)), True),
     (((1, 0), (0, 0)), ((1, 0), (2, 0)), False), (((1, 0), (2, 0)), ((2, 0), (1, 0)), False)],
)  # fmt: skip
def test_what_stays_in_its_cta(held, wanted, stay):
    assert stays(held, wanted) is stay


@pytest.mark.parametrize(
    "ctas, shape, expected",
    [(ROWS, (64, 8), ROWS), (ROWS, (1, 8), WHOLE), (COLUMNS, (1, 8), COLUMNS), (((1, 0), (2, 0)), (2, 8), ((1, 0), (0, 0)))],
)  # fmt: skip
def test_a_dimension_is_split_no_further_than_it_goes(ctas, shape, expected):
    assert within(ctas, shape) == expected


@pytest.mark.parametrize(
    "shape, ctas, expected",
    [((4,), ((1,),), [1, 1, 2, 2]), ((4,), ((0,),), [3] * 4), ((2, 2), ((0, 1), (1, 0)), [1, 2, 4, 8]),
     ((1, 2), ((1, 0),), [3, 3]), ((), ((),), [3])],
)  # fmt: skip
def test_which_ctas_have_an_element(shape, ctas, expected):
    assert holders(shape, ctas).tolist() == expected


def test_shapes_are_inferred_for_clusters():
    found = infer(target_row("gfx1250"), 4, "permute", (128, 64), BLOCKED, (1, 0))
    assert found.ctas == COLUMNS and "cga_layout=[[0, 1]]" in constructor(found)


@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_elementwise(tmp_path: Path, count: int):
    values = {"x_ptr": tensor(8192), "y_ptr": tensor(8192), "n": 5000}
    text = validated(
        tmp_path,
        ADD,
        clustered(count, {"B": 8192}, values, {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}),
        "gfx1250",
    )
    assert f"gl.num_ctas() == {count}" in text and text.count("cga_layout") == 1


@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_rows_are_reduced_by_the_cta_that_has_them(tmp_path: Path, count: int):
    values = {"x_ptr": tensor(64, 64), "y_ptr": tensor(64, 64)}
    text = validated(tmp_path, SOFTMAX, clustered(count, {"R": 64, "B": 64}, values), "gfx1250")
    assert f"gl.num_ctas() == {count}" in text


def test_a_launch_of_another_cluster_is_refused(tmp_path: Path):
    spec = clustered(2, {"R": 64, "B": 64}, {})
    text = translate(tmp_path, SOFTMAX, spec, target="gfx1250").text
    spec.options["num_ctas"] = 4
    with pytest.raises(Exception, match=r"asserts gl.num_warps\(\) == 4 and gl.num_ctas\(\) == 2"):
        compiled(tmp_path, text, spec, "gfx1250")


def test_launches_of_two_clusters_are_told_apart(tmp_path: Path):
    specs = [clustered(count, {"R": 64, "B": 64}, {}) for count in (1, 2)]
    specs[1] = specs[1].__class__(**{**specs[1].__dict__, "id": "two"})
    text = translate(tmp_path, SOFTMAX, *specs, target="gfx1250").text
    for spec in specs:
        compiled(tmp_path, text, spec, "gfx1250")


REFUSED = {
    "old value": ("old = tl.atomic_add(y_ptr, 1.0)\n    tl.store(y_ptr + o, old)", "old value of an atomic", 8, 11),
    "barrier": ("tl.store(y_ptr + o, 1.0)\n    tl.debug_barrier()", "a barrier", 9, 5),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_ctas_cannot_tell_each_other(name: str, tmp_path: Path):
    body, what, line, column = REFUSED[name]
    head = ADD.split("    o = ")[0] + "    o = tl.arange(0, B)\n    "
    (tmp_path / "source.py").write_text(head + body + "\n")
    spec = clustered(2, {"B": 1024}, {}, {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"})
    result = translate_kernel(TranslateRequest(str(tmp_path / "source.py"), "gfx1250", launches=(spec,)))
    assert result.text is None
    found = result.outcomes[0].diagnostics[0]
    assert (found.code, found.line, found.column) == ("clusters", line, column) and what in found.message, found


HEAD = ADD.split("    o = ")[0] + "    o = tl.arange(0, B)\n    x = tl.load(x_ptr + o)\n    "
WHOLE_TILES = {
    "sum": "tl.store(y_ptr, tl.sum(x, 0))",
    "softmax": "e = tl.exp(x - tl.max(x, 0))\n    tl.store(y_ptr + o, e / tl.sum(e, 0))",
    "greatest": "tl.store(y_ptr, tl.argmax(x, 0))",
    "scan": "tl.store(y_ptr + o, tl.cumsum(x, 0))",
    "gather": "tl.store(y_ptr + o, tl.gather(x, B - 1 - o, 0))",
    "histogram": "tl.store(y_ptr + tl.arange(0, 16), tl.histogram(o % 16, 16))",
    "rows and columns": """t = tl.reshape(x, (16, B // 16))
    tl.store(y_ptr + tl.arange(0, 16), tl.sum(t, 1))
    tl.store(x_ptr + tl.arange(0, B // 16), tl.sum(t, 0))""",
    "added in memory": "tl.atomic_add(y_ptr, tl.sum(x, 0))",
    "concatenation": "i = tl.arange(0, 2 * B)\n    tl.store(y_ptr + i, tl.cat(x, x, can_reorder=True), i < B)",
}


@pytest.mark.one_of(5)
@pytest.mark.parametrize("name", WHOLE_TILES)
@pytest.mark.parametrize("count", [2, 4])
def test_what_ctas_would_have_to_share_each_has_whole(name: str, count: int, tmp_path: Path):
    """No value moves between CTAs, so each has all of a tensor that is reduced, and one of them writes."""
    values = {"x_ptr": tensor(1024), "y_ptr": tensor(1024), "n": 1}
    spec = clustered(count, {"B": 1024}, values, {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"})
    text = validated(tmp_path, HEAD + WHOLE_TILES[name] + "\n", spec, "gfx1250")
    assert f"cga_layout={[[0]] * (count.bit_length() - 1)}" in text or "block_bases=" in text, text
    compiled(tmp_path, text, spec, "gfx1250")


SCALED_ROWS = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def k(x_ptr, w_ptr, y_ptr, R: tl.constexpr, B: tl.constexpr):
        r = tl.arange(0, R)
        c = tl.arange(0, B)
        x = tl.load(x_ptr + r[:, None] * B + c[None, :])
        mean = tl.sum(x, 1) / B
        w = tl.load(w_ptr + c)
        tl.store(y_ptr + r[:, None] * B + c[None, :], (x - mean[:, None]) * w[None, :])
""")


@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_a_vector_along_the_columns_of_rows_that_ctas_share(count: int, tmp_path: Path):
    """Each CTA has rows of its own and all of the vector, which Triton splits as if it went along the rows."""
    signature = {"x_ptr": "*fp32", "w_ptr": "*fp32", "y_ptr": "*fp32"}
    values = {"x_ptr": tensor(32, 128), "w_ptr": tensor(128), "y_ptr": tensor(32, 128)}
    spec = clustered(count, {"R": 32, "B": 128}, values, signature)
    text = validated(tmp_path, SCALED_ROWS, spec, "gfx1250")
    assert f"[[{count // 2 if count > 2 else 1}, 0]" in text or "[1, 0]" in text, text
    compiled(tmp_path, text, spec, "gfx1250")


def test_a_vector_that_is_written_too_is_not_shared_with_those_who_read_it(tmp_path: Path):
    """One CTA may write before another one has read: then one CTA writes everything."""
    written = SCALED_ROWS + "    tl.store(w_ptr + c, w * 2)\n"
    signature = {"x_ptr": "*fp32", "w_ptr": "*fp32", "y_ptr": "*fp32"}
    values = {"x_ptr": tensor(32, 128), "w_ptr": tensor(128), "y_ptr": tensor(32, 128)}
    text = validated(tmp_path, written, clustered(2, {"R": 32, "B": 128}, values, signature), "gfx1250")
    assert "[[0, 0]]" in text and "[[1, 0]]" not in text, text


IN_PLACE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def k(a_ptr, b_ptr, c_ptr, BM: tl.constexpr, BN: tl.constexpr):
        m = tl.arange(0, BM)
        n = tl.arange(0, BN)
        a = tl.load(a_ptr + m[:, None] * BN + n[None, :])
        b = tl.load(b_ptr + n[:, None] * BN + n[None, :])
        tl.store(STORED + m[:, None] * BN + n[None, :], tl.dot(a, b).to(tl.float16))
""")


def in_place(stored: str):
    signature = dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16")
    values = {"a_ptr": tensor(128, 64), "b_ptr": tensor(64, 64), "c_ptr": tensor(128, 64)}
    return IN_PLACE.replace("STORED", stored), clustered(4, {"BM": 128, "BN": 64}, values, signature)


@pytest.mark.parametrize("stored, ways", [("a_ptr", [[1, 0], [2, 0]]), ("c_ptr", [[0, 1], [1, 0]])])
def test_workgroups_that_store_to_an_operand_share_no_rows_of_it(tmp_path: Path, stored: str, ways: list):
    """By columns, one would store its part of rows that another one has yet to read."""
    assert f"cga_layout={ways}" in validated(tmp_path, *in_place(stored), "gfx1250")


def test_an_operand_that_all_read_and_one_stores_to(tmp_path: Path):
    text, spec = in_place("b_ptr")
    (tmp_path / "source.py").write_text(text)
    result = translate_kernel(TranslateRequest(str(tmp_path / "source.py"), "gfx1250", launches=(spec,)))
    found = result.outcomes[0].diagnostics[0]
    assert (found.code, found.line) == ("clusters", 10) and "reads and another one stores to" in found.message, found


def test_an_atomic_whose_old_value_nobody_reads(tmp_path: Path):
    body = "tl.atomic_add(y_ptr + o % 8, tl.load(x_ptr + o))\n"
    text = ADD.split("    o = ")[0] + "    o = tl.arange(0, B)\n    " + body
    values = {"x_ptr": tensor(1024), "y_ptr": tensor(8), "n": 1}
    spec = clustered(2, {"B": 1024}, values, {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"})
    assert "atomic" in validated(tmp_path, text, spec, "gfx1250")


ATTENTION = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def k(q_ptr, k_ptr, v_ptr, o_ptr, N, s, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
        m = tl.program_id(0) * BM + tl.arange(0, BM)
        n = tl.arange(0, BN)
        d = tl.arange(0, D)
        q = tl.load(q_ptr + m[:, None] * s + d[None, :])
        top = tl.full((BM,), -float("inf"), tl.float32)
        total = tl.zeros((BM,), tl.float32)
        acc = tl.zeros((BM, D), tl.float32)
        for i in range(0, N, BN):
            key = tl.load(k_ptr + (i + n)[None, :] * s + d[:, None])
            value = tl.load(v_ptr + (i + n)[:, None] * s + d[None, :])
            scores = tl.dot(q, key)
            higher = tl.maximum(top, tl.max(scores, 1))
            weights = tl.exp2(scores - higher[:, None])
            shrink = tl.exp2(top - higher)
            total = total * shrink + tl.sum(weights, 1)
            acc = tl.dot(weights.to(tl.float16), value, acc * shrink[:, None])
            top = higher
        tl.store(o_ptr + m[:, None] * s + d[None, :], (acc / total[:, None]).to(tl.float16))
""")


def attention(count: int, rows: int, columns: int = 64):
    """As many elements in a row of q, k and v as columns of scores."""
    pointers = {f"{name}_ptr": "*fp16" for name in "qkvo"}
    values = {name: tensor(256, columns) for name in pointers} | {"N": 256, "s": columns}
    return clustered(count, {"BM": rows, "BN": columns, "D": columns}, values, pointers | {"N": "i32", "s": "i32"})


@pytest.mark.one_of(3)
@pytest.mark.parametrize("count, rows", [(2, 128), (4, 256), (4, 128), (8, 128)])
def test_attention(tmp_path: Path, count: int, rows: int):
    """Each workgroup has rows of its own; keys and values come to all of them by one copy."""
    text = validated(tmp_path, ATTENTION, attention(count, rows), "gfx1250")
    whole = str([[0, 0]] * (count.bit_length() - 1))
    assert whole in text and "cluster.wait()" in text, text


def test_scores_of_which_triton_splits_columns_alone(tmp_path: Path):
    """Two workgroups would have 64 columns each; of four, two have other rows, and so have these two."""
    text = validated(tmp_path, ATTENTION, attention(2, 128, 128), "gfx1250")
    assert "cga_layout=[[1, 0]]" in text and "cga_layout=[[0, 1]]" not in text, text


def test_products_and_descriptors(tmp_path: Path):
    """A product of the tiles of descriptors, stored through one."""
    text = dedent("""
        import triton
        import triton.language as tl


        @triton.jit
        def k(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
            a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
            b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
            c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
            m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
            acc = tl.zeros((BM, BN), tl.float32)
            for i in range(0, K, BK):
                acc = tl.dot(a_desc.load([m, i]), b_desc.load([i, n]), acc)
            bias = c_desc.load([m, n])
            c_desc.store([m, n], (acc + bias).to(tl.float16))
    """)
    values = {"a_ptr": tensor(128, 256), "b_ptr": tensor(256, 128), "c_ptr": tensor(128, 128)}
    signature = dict.fromkeys(values, "*fp16") | dict.fromkeys("MNK", "i32")
    for count in (2, 4, 8, 16):
        spec = clustered(count, {"BM": 128, "BN": 128, "BK": 64}, values | {"M": 128, "N": 128, "K": 256}, signature)
        spec.attrs.update(dict.fromkeys("MNK", "D"))
        validated(tmp_path, text, spec, "gfx1250")


@pytest.mark.parametrize("name", ["matmul with a residual", "matmul with a masked residual"])
def test_a_tile_that_is_added_to_a_product_is_loaded_as_ctas_share_that(name: str, tmp_path: Path):
    """Two of them have its columns, which Triton loads by rows: no value moves between them."""
    text = validated(tmp_path, SOURCES[name].file, SOURCES[name].launch(2), "gfx1250")
    assert "cga_layout=[[0, 1]]" in text and "cga_layout=[[1, 0]]" not in text


def test_scores_that_only_columns_could_split_are_refused(tmp_path: Path):
    (tmp_path / "source.py").write_text(ATTENTION)
    request = TranslateRequest(str(tmp_path / "source.py"), "gfx1250", launches=(attention(2, 64),))
    result = translate_kernel(request)
    found = result.outcomes[0].diagnostics[0]
    assert result.text is None and (found.code, found.line) == ("clusters", 18), found
    assert "a reduction along a dimension that CTAs share" in found.message, found


@pytest.mark.parametrize(
    "ctas, rows",
    [(((0, 1), (1, 0)), ((1, 0), (2, 0))), (((0, 0), (1, 0)), ((1, 0), (2, 0))), (((0, 1), (0, 0)), WHOLE * 2),
     (((1, 0), (0, 1)), ((0, 1), (0, 2))), (((1,), (2,)), ((1,), (2,))), (((1,), (0,)), ((0,), (0,)))],
    ids=["product", "first operand", "second operand", "transposed product", "rows", "columns"],
)  # fmt: skip
def test_rows_instead_of_columns(ctas, rows):
    """Of a cluster whose first bit splits columns of products, the second one rows."""
    assert rows_instead(ctas, frozenset({0})) == rows


def test_more_columns_than_one_bit_splits():
    assert rows_instead(((0, 1), (0, 2), (1, 0)), frozenset({0, 1})) == ((1, 0), (2, 0), (4, 0))
    assert rows_instead(((0, 1), (1, 0), (2, 0)), frozenset({0})) == ((1, 0), (2, 0), (4, 0))


@pytest.mark.parametrize(
    "ctas, fewer",
    [(((0, 1), (1, 0)), ((1, 0),)), (((0, 1), (1, 0), (2, 0)), ((1, 0), (2, 0))), (((0, 1), (0, 0)), ((0, 0),)),
     (((1,), (2,)), ((1,),)), (((1, 0), (2, 0), (4, 0)), ((1, 0), (2, 0)))],
    ids=["product", "more rows", "second operand", "in no product", "rows in no product"],
)  # fmt: skip
def test_workgroups_that_differ_in_columns_alone_are_one(ctas, fewer):
    assert without_bits(ctas, frozenset({0})) == fewer


@pytest.mark.parametrize(
    "ctas, bits",
    [("[0, 1], [1, 0]", {0}), ("[1, 0], [0, 1]", {1}), ("[1, 0], [2, 0]", set()), ("[0, 1], [0, 2]", set())],
)
def test_bits_that_split_columns(ctas: str, bits: set[int]):
    text = dedent(f"""
        #acc = #ttg.amd_wmma<{{version = 3, isTranspose = true, ctaLayout = {{warp = []}}, CGALayout = [{ctas}], instrShape = [16, 16, 32]}}>
        module attributes {{"ttg.num-ctas" = 4 : i32, "ttg.num-warps" = 1 : i32}} {{
          tt.func public @k(%a: tensor<64x32xf16, #ttg.dot_op<{{opIdx = 0, parent = #acc, kWidth = 8}}>>, %b: tensor<32x64xf16, #ttg.dot_op<{{opIdx = 1, parent = #acc, kWidth = 8}}>>, %c: tensor<64x64xf32, #acc>) {{
            %d = tt.dot %a, %b, %c : tensor<64x32xf16, #ttg.dot_op<{{opIdx = 0, parent = #acc, kWidth = 8}}>> * tensor<32x64xf16, #ttg.dot_op<{{opIdx = 1, parent = #acc, kWidth = 8}}>> -> tensor<64x64xf32, #acc>
            tt.return
          }}
        }}
    """)
    assert column_bits(text) == bits


def test_layouts_of_a_cluster_are_drawn(tmp_path: Path):
    """The part of one workgroup, whatever the report draws it from: registers, tiles, rings of tiles."""
    spec = attention(2, 128)
    text = translate(tmp_path, ATTENTION, spec, target="gfx1250").text
    (tmp_path / "output.py").write_text(text)
    ttgir = translated_stage(str(tmp_path / "output.py"), spec, "gfx1250").text
    drawn = {d.name: d for d in drawn_layouts(ttgir, text, "k", "gfx1250", 4)}
    assert drawn["wmma"].held.shape == (64, 64)
    assert "128x64 f32 of 2 CTAs, drawn: the 64x64 of the first" in drawn["wmma"].uses
    ring = next(d for d in drawn.values() if d.stored is not None and "which 2 of them have" in d.uses[0])
    assert ring.stored.shape == (64, 64)


def test_the_barrier_of_a_cluster_is_none_of_the_workgroup():
    """Cycles: one wave of a workgroup signals it, so waves do not have to agree on it."""
    program = read_program(
        "k:\n\ts_barrier_signal -1\n\ts_barrier_wait -1\n\ts_barrier_signal -3\n\ts_barrier_wait -3\n"
    )
    lines = [line for line in program.lines if line.op]
    assert [line.of_cluster for line in lines] == [False, False, True, True]
    translator = Translator(program.lines, target_row("gfx1250"), TIMINGS["gfx1250"])
    steps = [Step(n) for n, line in enumerate(program.lines) if line.op]
    assert [operation.kind for operation in translator.operations(steps)] == [ARRIVE, MEET, ISSUE, ISSUE]
