"""Helpers that load a loop's tiles take the place of their calls; what is said of the result names lines of the file."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_language import checked
from translation_of import dedent, launch, tensor, translate, validated
from triton.compiler.errors import CompilationError

from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.loops.source import inline

HEAD = """
    import triton
    import triton.language as tl

    SCALE = tl.constexpr(2.0)

    @triton.jit
    def load(ptrs, mask, MASKED: tl.constexpr, other=0.0):
        if MASKED:
            return tl.load(ptrs, mask=mask, other=other)
        else:
            return tl.load(ptrs)

    @triton.jit
    def load_twice(ptrs, mask, MASKED: tl.constexpr):
        if MASKED:
            return tl.load(ptrs, mask=mask, other=0.0) + tl.load(ptrs, mask=mask, other=0.0)
        else:
            return tl.load(ptrs) + tl.load(ptrs)

    @triton.jit
    def load_scaled(ptrs, mask, MASKED: tl.constexpr):
        if MASKED:
            return tl.load(ptrs, mask=mask, other=0.0)
        else:
            return (tl.load(ptrs) * SCALE).to(tl.float16)

    @triton.jit
    def kernel(x_ptr, y_ptr, z_ptr, n, B: tl.constexpr):
        o = tl.arange(0, B)
        EVEN: tl.constexpr = B == 32
        p = x_ptr + o[:, None] * B + o[None, :]
        mask = o[:, None] < n
        acc = tl.zeros((B, B), tl.float32)
        q = y_ptr + o[:, None] * B + o[None, :]
        for k in range(n):
            b = tl.load(q)
"""
TAIL = """
            p += B * B
            q += B * B
        if not EVEN:
            acc += 1.0
        tl.store(z_ptr + o[:, None] * B + o[None, :], acc)
"""
BODIES = {
    "branches": "            a = load(p, mask, not EVEN)\n            acc = tl.dot(a, b, acc)",
    "pointer that is computed": "            a = load(p + k * B, mask, not EVEN)\n            acc = tl.dot(a, b, acc)",
    "under a condition": (
        "            if EVEN:\n                a = load(p, mask, not EVEN)\n"
        "            else:\n                a = load_twice(p, mask, EVEN)\n            acc = tl.dot(a, b, acc)"
    ),
}
SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "n": "i32"}


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(1) as found:
        yield found


def source(body: str) -> str:
    return dedent(HEAD + body + TAIL)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("what", BODIES)
@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
def test_a_helper_that_returns_from_branches_is_pipelined(what: str, target: str, pool, tmp_path: Path):
    text = checked(pool, tmp_path, source(BODIES[what]), "kernel", target, SIGNATURE)
    assert "NUM_BUFFERS" in text and "= load(" not in text
    # The branch that this launch does not take is still refused to others.
    assert "if not EVEN:\n" in text and "`not EVEN` was in no translated launch" in text


def test_what_is_refused_is_named_without_its_line(pool, tmp_path: Path):
    text = checked(pool, tmp_path, source(BODIES["branches"]), "kernel", "gfx1201", SIGNATURE)
    assert (
        '`not EVEN` was in no translated launch"' in text
    )  # a comment above the kernel would change the number of the line


def test_an_argument_is_not_computed_twice(pool, tmp_path: Path):
    body = "            a = load_twice(p + k * B, mask, not EVEN)\n            acc = tl.dot(a, b, acc)"
    text = checked(pool, tmp_path, source(body), "kernel", "gfx1201", SIGNATURE)
    assert text.count("k * B") <= 2  # of this tile, and of the one ahead


def test_a_name_that_means_something_else_here_is_left_alone(pool, tmp_path: Path):
    body = "            SCALE = 3.0\n            a = load_scaled(p, mask, not EVEN)\n            acc = tl.dot(a, b, acc) * SCALE"
    text = checked(pool, tmp_path, source(body), "kernel", "gfx1201", SIGNATURE)
    assert "= load_scaled(" in text


POINTERS = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def products(acc, x_ptrs, y_ptrs, n, B: tl.constexpr):
        for k in range(n):
            x = tl.load(x_ptrs)
            y = tl.load(y_ptrs, mask=tl.arange(0, B)[:, None] < n * B - k * B - 5, other=0.0)
            acc = tl.dot(x, y, acc)
            x_ptrs += B * B
            y_ptrs += B * B
        return acc


    @triton.jit
    def kernel(x_ptr, y_ptr, z_ptr, n, B: tl.constexpr):
        o = tl.arange(0, B)
        tile = o[:, None] * B + o[None, :]
        x_ptrs = x_ptr + tile
        y_ptrs = y_ptr + tile
        acc = tl.zeros((B, B), tl.float32)
        acc = products(acc, x_ptrs, y_ptrs, n, B)
        tl.store(z_ptr + tile, acc)
""")


def _pointers(text: str, n: int, folder: Path) -> str:
    signature = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "n": "i32"}
    values = {"x_ptr": tensor(32 * n + 32, 32), "y_ptr": tensor(32 * n + 32, 32), "z_ptr": tensor(32, 32), "n": n}
    return validated(folder, text, launch("kernel", signature, {"B": 32}, values=values), "gfx942")


@pytest.mark.one_of(3)
@pytest.mark.parametrize("n", [0, 1, 3, 4])
def test_a_helper_that_is_given_tensors_of_pointers(n: int, tmp_path: Path):
    """In its caller they are a tensor's start and offsets."""
    text = _pointers(POINTERS, n, tmp_path)
    kernel = text.partition("@gluon.jit")[2]
    assert "products" not in kernel and "buffer_load(x_base, x_offs" in kernel and "gl.load(" not in kernel, text


def test_pointers_that_are_read_after_the_call_stay_as_they_are(tmp_path: Path):
    text = _pointers(POINTERS.replace("tile, acc)", "tile, acc + tl.load(x_ptrs))"), 3, tmp_path)
    assert "x_ptrs_inside_offs = x_offs" in text and "products(acc, " not in text.partition("def kernel(")[2], text


def test_two_stages_with_the_same_pointers(tmp_path: Path):
    """What is decided in the call is a constant in its place too."""
    call = "    acc = products(acc, x_ptrs, y_ptrs, n, B)\n"
    stage = call.replace("B)", "B, x_ptr.dtype.element_ty == tl.float16)")
    source = POINTERS.replace("B: tl.constexpr):\n    for", "B: tl.constexpr, HALF: tl.constexpr):\n    for")
    source = source.replace("acc = tl.dot(x, y, acc)", "x = x * 2.0 if HALF else x\n        acc = tl.dot(x, y, acc)")
    text = _pointers(source.replace(call, stage + stage), 3, tmp_path)
    kernel = text.partition("def kernel(")[2]
    assert "products(acc, " not in kernel and kernel.count("gl.load(") == 0 and kernel.count("for k in") == 2, text


def test_a_call_stays_where_its_helper_does_not_fit(monkeypatch):
    def refuse(_):
        raise CompilationError("", ast.parse("x").body[0], "`x` has another type in the loop")

    monkeypatch.setattr(inline, "inlined_kernel", lambda trace, staged: object())
    monkeypatch.setattr(inline, "_staged", lambda launch: frozenset([("source.py", 1)]))
    launch = SimpleNamespace(trace=None)
    assert inline.inline_tile_loads(launch, refuse, refuse) is launch


def test_a_row_that_a_helper_is_given_is_moved_before_its_loop(tmp_path: Path):
    source = POINTERS.replace("    acc = tl.zeros", "    rows = tl.arange(0, B)\n    acc = tl.zeros")
    source = source.replace("n, B: tl.constexpr):\n    for", "n, rows, B: tl.constexpr):\n    for")
    source = source.replace("    acc = products(acc, x_ptrs, y_ptrs, n, B)\n", "")
    source = source.replace("tile, acc)", "tile, products(acc, x_ptrs, y_ptrs, n, rows, B))")
    source = source.replace("tl.load(x_ptrs)", "tl.load(x_ptrs, mask=(rows < n * B - k * B - 7)[None, :], other=0.0)")
    source = source.replace("tl.arange(0, B)[:, None] < n", "rows[:, None] < n")
    text = _pointers(source, 3, tmp_path)
    before, _, loop = text.partition("for k in range(n)")
    assert "= gl.convert_layout(rows, " in before and "gl.convert_layout(rows, " not in loop, text


def test_variables_of_two_such_helpers_stay_apart(tmp_path: Path):
    """`mask` is one of rows in the first, made before its loop, and one of a tile in the second, made in its loop."""
    head, _, rest = POINTERS.partition("@triton.jit\ndef kernel")
    masked = "tl.arange(0, B)[:, None] < n * B - k * B - 5"
    first = head.replace("    for k", "    mask = tl.arange(0, B) < B\n    for k").replace(
        "x_ptrs)", "x_ptrs, mask[:, None])"
    )
    second = head[head.index("@triton.jit") :].replace("products", "more_products")
    second = second.replace("x_ptrs", "u_ptrs").replace("y_ptrs", "v_ptrs")
    second = second.replace(f"mask={masked}", "mask=mask").replace(
        "        y =", f"        mask = {masked}\n        y ="
    )
    call = "    acc = products(acc, x_ptrs, y_ptrs, n, B)\n"
    again = "    u_ptrs = x_ptr + tile\n    v_ptrs = y_ptr + tile\n    acc = more_products(acc, u_ptrs, v_ptrs, n, B)\n"
    source = f"{first}{second}@triton.jit\ndef kernel{rest.replace(call, call + again)}"
    text = _pointers(source, 3, tmp_path)
    kernel = text.partition("def kernel(")[2]
    assert "more_products(acc, " in kernel and " products(acc, " not in kernel, text


BRANCHES = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def load_tile(ptrs, rows, columns, end_of_rows, end_of_columns):
        if rows is not None and columns is not None:
            mask = (rows[:, None] < end_of_rows) & (columns[None, :] < end_of_columns)
            tile = tl.load(ptrs, mask=mask, other=0.0)
        elif rows is not None:
            mask = rows[:, None] < end_of_rows
            tile = tl.load(ptrs, mask=mask, other=0.0)
        elif columns is not None:
            mask = columns[None, :] < end_of_columns
            tile = tl.load(ptrs, mask=mask, other=0.0)
        else:
            tile = tl.load(ptrs)
        return tile


    @triton.jit
    def products(acc, x_ptrs, y_ptrs, start, end, n, offs, B: tl.constexpr, MASKED: tl.constexpr):
        for k in range(start, end, B):
            if MASKED:
                k_offs = k + tl.arange(0, B)
            else:
                k_offs = None
            x = load_tile(x_ptrs, None, k_offs, B, n)
            mask = tl.full([B, B], True, dtype=tl.int1)
            if MASKED:
                if k + B == end:
                    mask = mask & (k + offs[None, :] < n - 3)
            xy = tl.where(mask, tl.dot(x, x), 1.0)
            y = load_tile(y_ptrs, k_offs, None, n, B)
            acc += tl.dot(xy.to(y.type.element_ty), y)
            x_ptrs += B
            y_ptrs += B * B
        return acc


    @triton.jit
    def kernel(x_ptr, y_ptr, z_ptr, n, stride, B: tl.constexpr):
        offs = tl.arange(0, B)
        x_ptrs = x_ptr + offs[:, None] * stride + offs[None, :]
        y_ptrs = y_ptr + offs[:, None] * B + offs[None, :]
        acc = tl.zeros((B, B), tl.float32)
        full = n // B * B
        if full > 0:
            acc = products(acc, x_ptrs, y_ptrs, 0, full, n, offs, B, False)
        if full < n:
            x_ptrs += full
            y_ptrs += full * B
            acc = products(acc, x_ptrs, y_ptrs, full, full + B, n, offs, B, True)
        tl.store(z_ptr + offs[:, None] * B + offs[None, :], acc)
""")
LENGTHS = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "n": "i32", "stride": "i32"}


@pytest.mark.compile
@pytest.mark.parametrize("n", [20, 64, 108])
@pytest.mark.parametrize("target", ["gfx950", "gfx1250"])
def test_a_helper_in_a_loop_of_a_helper_that_loads_behind_branches(target: str, n: int, tmp_path: Path):
    """The loop is pipelined in both of its forms, and what is selected by a mask that is true everywhere stays where it is."""
    data = {"dtype": "float16", "shape": [32, n], "stride": [128, 1], "storage": 31 * 128 + n, "offset": 0}
    values = {"x_ptr": {"tensor": data}, "y_ptr": tensor(n, 32), "z_ptr": tensor(32, 32), "n": n, "stride": 128}
    attrs = {"x_ptr": "DS", "y_ptr": "DS", "z_ptr": "DS", "stride": "D"}
    spec = launch("kernel", LENGTHS, {"B": 32}, attrs=attrs, values=values)
    text = validated(tmp_path, BRANCHES, spec, target)
    kernel = text.partition("def kernel(")[2]
    assert kernel.count("NUM_BUFFERS - 1") >= 2 and "load_tile(" not in kernel and "products(" not in kernel, text
    assert "y_smem" in kernel and "if True:" not in kernel, text
    assert target == "gfx1250" or "gl.convert_layout(mask" not in kernel and "xy = gl.where(mask" in kernel, text


@pytest.mark.compile
def test_a_tile_whose_type_is_asked_for_is_read_once(tmp_path: Path):
    """`y.type` says nothing of a layout."""
    data = {"dtype": "float16", "shape": [32, 64], "stride": [128, 1], "storage": 31 * 128 + 64, "offset": 0}
    values = {"x_ptr": {"tensor": data}, "y_ptr": tensor(64, 32), "z_ptr": tensor(32, 32), "n": 64, "stride": 128}
    attrs = {"x_ptr": "DS", "y_ptr": "DS", "z_ptr": "DS", "stride": "D"}
    text = validated(tmp_path, BRANCHES, launch("kernel", LENGTHS, {"B": 32}, attrs=attrs, values=values), "gfx950")
    assert "xy.to(y.dtype)" in text and text.count("load_shared_relaxed(y_smem") == 1, text


@pytest.mark.compile
def test_a_load_that_stays_in_its_helper_is_named(tmp_path: Path):
    """Its call is a part of an expression."""
    text = source("            acc = tl.dot(load(p, mask, not EVEN), b, acc)")
    result = translate(tmp_path, text, launch("kernel", SIGNATURE, {"B": 32}), target="gfx950")
    loop, call = (1 + text.splitlines().index(f"    {line}") for line in ("    for k in range(n):"[4:], CALL))
    (kept,) = result.outcomes[0].kept_loops
    assert (kept.line, kept.index) == (loop, "k")
    assert kept.reason == f"a tile is loaded by `load` in line {call}"
    assert str(kept).startswith(f"`for k` in line {loop} is not pipelined as Triton's compiler does it: ")


CALL = "    acc = tl.dot(load(p, mask, not EVEN), b, acc)"
