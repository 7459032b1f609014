"""Descriptors made by the host become tuples."""

import ast

import pytest
import translation_of
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.output.contracts.launch_checks import RunTimeContract
from gluonize.read.spec.compile_arguments import descriptor_tuple
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest
from launch_checks_of import check_for, check_of
from translation_of import compiled, dedent, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def total(desc, row, BLOCK: tl.constexpr):
        return tl.sum(desc.load([row, 0]).to(tl.float32), 1)


    @triton.jit
    def scale(x_desc, y_desc, sums_ptr, BLOCK: tl.constexpr):
        row = tl.program_id(0) * BLOCK
        x = x_desc.load([row, 0])
        y_desc.store([row, 0], x * x_desc.shape[0] + x_desc.strides[0])
        tl.store(sums_ptr + row + tl.arange(0, BLOCK), total(x_desc, row, BLOCK))
    """)


def described(rows: int, columns: int) -> dict:
    size = rows * columns
    tensor = {"dtype": "float32", "shape": [rows, columns], "stride": [columns, 1], "storage": size, "offset": 0}
    return {
        "descriptor": {
            "base": {"tensor": tensor},
            "shape": [rows, columns],
            "strides": [columns, 1],
            "block_shape": [32, 32],
        }
    }


def launch(source: str) -> LaunchSpec:
    kind = "tensordesc<fp32[32, 32]>"
    sums = {"tensor": {"dtype": "float32", "shape": [64], "stride": [1], "storage": 64, "offset": 0}}
    return LaunchSpec(
        "scale", "scale", source, {"x_desc": kind, "y_desc": kind, "sums_ptr": "*fp32", "BLOCK": "constexpr"},
        {"BLOCK": 32}, {"sums_ptr": "DS"}, {"num_warps": 4}, (2,),
        values={"x_desc": described(50, 24), "y_desc": described(50, 24), "sums_ptr": sums},
    )  # fmt: skip


@pytest.mark.parametrize("target", ["gfx950", "gfx1250", "gfx1100"])
def test_the_kernel_takes_tuples(target, tmp_path):
    source, output = tmp_path / "source.py", tmp_path / "output.py"
    source.write_text(SOURCE)
    spec = launch(str(source))
    with WorkerPool(1) as pool:
        result = pool.call(
            "gluonize.translation:translate_kernel", TranslateRequest(str(source), target, launches=(spec,))
        )
        assert result.text is not None, result
        output.write_text(result.text)
        pool.call("gluonize.judge.lower.jobs:lower_file", str(output), spec, target)
        answer = pool.call("gluonize.judge.verdict:validate_launch", str(source), str(output), spec, target)
    assert answer["status"] == "validated", answer
    if target == "gfx1250":
        assert "x_desc = tdm.make_tensor_descriptor(x_desc[0], x_desc[1], x_desc[2]," in result.text
    else:
        assert "buffer_load" in result.text, "storage is known to be small"
    assert "x_desc is (base, tuple(shape), tuple(strides)) of the tensor descriptor" in result.outcomes[0].assumptions


def test_the_hook_asks_for_the_tuple():
    check = check_for(RunTimeContract(("x_desc",), (), ("x_desc",)), ("x_desc", "n"))
    check((object(), (1, 1), (1, 1)), 3)
    with pytest.raises(ValueError, match=r"kernel: x_desc is not \(base"):
        check(object(), 3)

    class Large:
        shape = ()

        def untyped_storage(self):
            return self

        def size(self):
            return 2**31

    with pytest.raises(ValueError, match="x_desc has 2 GiB or more"):
        check((Large(), (1, 1), (1, 1)), 3)


def test_what_the_tuple_is_compiled_as():
    kinds, values, flags = descriptor_tuple("tensordesc<bf16[128, 64]>", described(512, 250))
    assert kinds == ["*bf16", ["i32", "i32"], ["i64", "constexpr"]]
    assert values == [None, [None, None], [None, 1]]
    assert flags == ["SD", ["D", ""], ["", ""]]
    assert descriptor_tuple("tensordesc<bf16[8]>", None)[2] == ["D", [""], [""]]


HOOKED = dedent("""
    import triton
    import triton.language as tl


    def set_blocks(nargs):
        # The host makes descriptors before it knows the block.
        nargs["x_desc"].block_shape = [
            nargs["BLOCK"],
            32,
        ]
        nargs["other"].block_shape = 1
        for name in ("y_desc",):
            nargs[name].block_shape = [nargs["BLOCK"], 32]


    def unrelated(nargs):
        nargs["x_desc"].block_shape = None


    @triton.autotune([triton.Config({"BLOCK": 32}, num_warps=4, pre_hook=set_blocks)], key=[])
    @triton.jit
    def copy(x_desc, y_desc, BLOCK: tl.constexpr):
        row = tl.program_id(0) * BLOCK
        y_desc.store([row, 0], x_desc.load([row, 0]))
    """)


def test_a_hook_before_autotuning_sets_no_block_shape_of_a_tuple(tmp_path):
    kind = "tensordesc<fp32[32, 32]>"
    source = tmp_path / "source.py"
    source.write_text(HOOKED)
    spec = LaunchSpec(
        "copy", "copy", str(source), {"x_desc": kind, "y_desc": kind, "BLOCK": "constexpr"},
        {"BLOCK": 32}, {}, {"num_warps": 4}, (2,),
    )  # fmt: skip
    with WorkerPool(1) as pool:
        request = TranslateRequest(str(source), "gfx950", launches=(spec,))
        result = pool.call("gluonize.translation:translate_kernel", request)
    assert result.text is not None, result
    space: dict = {}
    functions = [f for f in ast.parse(result.text).body if getattr(f, "name", "") in ("set_blocks", "unrelated")]
    hooks = "\n".join(ast.get_source_segment(result.text, function) for function in functions)
    exec(hooks, space)
    other = type("Other", (), {})()
    space["set_blocks"]({"x_desc": (1, (2,), (3,)), "y_desc": (1, (2,), (3,)), "other": other, "BLOCK": 32})
    assert other.block_shape == 1
    kept = type("Descriptor", (), {})
    nargs = {"x_desc": kept(), "y_desc": kept(), "other": other, "BLOCK": 32}
    space["set_blocks"](nargs)
    assert nargs["x_desc"].block_shape == nargs["y_desc"].block_shape == [32, 32]
    assert 'nargs["x_desc"].block_shape = None' in hooks and hooks.count("isinstance") == 2


@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
def test_tiles_of_every_type_and_storage_of_any_size(target, tmp_path):
    """What lies outside such a tensor is filled with zeros of its own type."""
    source = dedent("""
        import triton
        import triton.language as tl


        @triton.jit
        def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
            x = tl.make_tensor_descriptor(x_ptr, [n, B], [B, 1], [B, B])
            o = tl.arange(0, B)
            tl.store(y_ptr + o[:, None] * B + o[None, :], x.load([B, 0]).to(tl.float32))
        """)
    attrs = {"x_ptr": "D", "y_ptr": "DS"}
    values = {"x_ptr": tensor(48, 32), "y_ptr": tensor(32, 32), "n": 48}
    signature = {"x_ptr": "*fp8e5", "y_ptr": "*fp32", "n": "i32"}
    spec = translation_of.launch("kernel", signature, {"B": 32}, attrs=attrs, values=values)
    text = validated(tmp_path, source, spec, target)
    assert "def load_tile_2d_far(" in text, text
    compiled(tmp_path, text, spec, target)


ROWS_FROM_MEMORY = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(a_desc, b_desc, row_ptr, c_ptr, BLOCK: tl.constexpr):
        row = tl.load(row_ptr)
        acc = tl.zeros((BLOCK, BLOCK), tl.float32)
        for k in range(0, a_desc.shape[1], BLOCK):
            acc = tl.dot(a_desc.load([row, k]), b_desc.load([k, 0]), acc)
        at = tl.arange(0, BLOCK)
        tl.store(c_ptr + at[:, None] * BLOCK + at[None, :], acc)
    """)


@pytest.mark.parametrize("columns", [200, 256], ids=["rows of 200", "rows of 256"])
def test_rows_that_triton_does_not_find_aligned_are_not_copied_to_lds(columns, tmp_path):
    """Triton asks whether a stride is a multiple of 16 elements; what it does not know it cannot copy in wide pieces."""
    source, output = tmp_path / "source.py", tmp_path / "output.py"
    source.write_text(ROWS_FROM_MEMORY)
    kind = "tensordesc<fp16[64, 64]>"
    tall, wide = described(128, columns), described(columns, 64)
    for held in (tall, wide):
        held["descriptor"]["base"]["tensor"]["dtype"] = "float16"
    row = {"tensor": {"dtype": "int32", "shape": [1], "stride": [1], "storage": 1, "offset": 0, "range": [0, 64]}}
    out = {"tensor": {"dtype": "float32", "shape": [64, 64], "stride": [64, 1], "storage": 4096, "offset": 0}}
    spec = LaunchSpec(
        "product", "product", str(source),
        {"a_desc": kind, "b_desc": kind, "row_ptr": "*i32", "c_ptr": "*fp32", "BLOCK": "constexpr"},
        {"BLOCK": 64}, {"row_ptr": "DS", "c_ptr": "DS"}, {"num_warps": 4}, (1,),
        values={"a_desc": tall, "b_desc": wide, "row_ptr": row, "c_ptr": out},
    )  # fmt: skip
    with WorkerPool(1) as pool:
        request = TranslateRequest(str(source), "gfx1250", launches=(spec,))
        result = pool.call("gluonize.translation:translate_kernel", request)
        assert result.text is not None, result
        output.write_text(result.text)
        pool.call("gluonize.judge.lower.jobs:lower_file", str(output), spec, "gfx1250")
    assert ("global_to_shared" in result.text) == (columns == 256)
    check = check_of(result.text, "product")

    def launched(columns: int) -> None:
        rows, columns_of = (0, (128, columns), (columns, 1)), (0, (columns, 64), (64, 1))
        check(a_desc=rows, b_desc=columns_of, row_ptr=None, c_ptr=None)

    launched(columns)
    if columns == 200:
        launched(104)
        return
    assert "assumes a_desc.strides.0 divisible by 16" in result.text, result.text  # the mover takes any row of b
    with pytest.raises(ValueError, match=r"product: a_desc\[2\]\[0\]=104 is not a multiple of 16"):
        launched(104)


@pytest.fixture
def made_in_the_kernel() -> tuple[str, LaunchSpec]:
    """The product with descriptors that the kernel makes, and a launch of it."""
    made = ROWS_FROM_MEMORY.replace("a_desc, b_desc, row_ptr", "a_ptr, b_ptr, K, row_ptr").replace(
        "a_desc.shape[1]", "K"
    )
    lines = """
        a_desc = tl.make_tensor_descriptor(a_ptr, [128, K], [K, 1], [BLOCK, BLOCK])
        b_desc = tl.make_tensor_descriptor(b_ptr, [K, BLOCK], [BLOCK, 1], [BLOCK, BLOCK])
        row = """
    source = made.replace("\n    row = ", dedent(lines).join(["\n", ""]).replace("\n", "\n    ").rstrip() + " ")
    values = {"a_ptr": tensor(128, 256), "b_ptr": tensor(256, 64), "c_ptr": tensor(64, 64), "K": 256}
    values["row_ptr"] = tensor(1, range=[0, 64])
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "K": "i32", "row_ptr": "*i32", "c_ptr": "*fp32"}
    attrs = {"a_ptr": "DS", "b_ptr": "DS", "row_ptr": "DS", "c_ptr": "DS", "K": "D"}
    spec = translation_of.launch("product", signature, {"BLOCK": 64}, attrs=attrs, values=values)
    return source, spec


def test_a_stride_that_the_kernel_is_given_is_checked_too(made_in_the_kernel, tmp_path):
    source, spec = made_in_the_kernel
    text = validated(tmp_path, source, spec, "gfx1250")
    assert "global_to_shared" in text and "K and addresses of a_ptr divisible by 16" in text, text
    compiled(tmp_path, text, spec, "gfx1250")


def test_warps_of_their_own_make_the_copies_that_a_function_is_for(made_in_the_kernel, tmp_path):
    source, spec = made_in_the_kernel
    text = validated(tmp_path, source, spec, "gfx1250", strategy="warp-specialized")
    producer = text.split("def product_producer(")[1].split("def ")[0]
    assert "copy_tile_2d(a_desc_smem.index(slot), " in producer and "wmma" not in producer, text
    compiled(tmp_path, text, spec, "gfx1250")
