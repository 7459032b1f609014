"""Which offsets may be added to a moved base: what cannot be negative, with the wrap-around of every type on the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, translate

from gluonize.judge.verdict import validate_launch

SOURCE = """
    import triton
    import triton.language as tl


    @triton.jit
    def arange(first, n: tl.constexpr):
        return tl.arange(0, n) - first


    @triton.jit
    def cdiv(x, y):
        return x - y


    @triton.jit
    def behind(offs, n):
        return offs, offs - n


    @triton.jit
    def chosen(offs, n):
        if n > 3:
            found = offs - n
        else:
            found = offs
        return found


    @triton.jit
    def kernel(x_ptr, i_ptr, y_ptr, S, n, B: tl.constexpr):
        offs = tl.arange(0, B)
        row_ptr = x_ptr + (tl.program_id(0) + 1) * S
        step = offs.to(tl.uint8)
{before}
        tl.store(y_ptr + offs, tl.load(row_ptr + ({added})))
"""
# The assignments before the load, and what it adds to a pointer that was moved.
MAYBE_NEGATIVE = {
    "unsigned bytes as signed ones": ("", "(step + 200).to(tl.int8)"),
    "a difference of unsigned numbers": ("", "(offs.to(tl.uint32) - n.to(tl.uint32)).to(tl.int32)"),
    "a bitcast": ("", "(offs.to(tl.uint32) - n.to(tl.uint32)).to(tl.int32, bitcast=True)"),
    "bits of a float": ("", "(offs - 0.5).to(tl.float32).to(tl.int32, bitcast=True)"),
    "64 bits cut to 32": ("", "(offs.to(tl.int64) * n * 65536).to(tl.int32)"),
    "32 bits cut to 16": ("", "(offs * n).to(tl.int16)"),
    "a product of shorts": ("", "offs.to(tl.int16) * n.to(tl.int16)"),
    "a remainder of a product": ("", "(offs * n) % 64"),
    "a remainder of a sum": ("", "(offs + n) % 64"),
    "a quotient of a product": ("", "(offs * n) // 64"),
    "a quotient by what may be negative": ("", "offs // (n - 5)"),
    "a product that is shifted back": ("", "(offs * n) >> 3"),
    "a shift out of the type that is shifted back": ("", "(offs << 28) >> 20"),
    "the least of a product": ("", "tl.minimum(offs * n, offs)"),
    "the least of a difference": ("", "tl.minimum(offs, n - 3)"),
    "a choice with a difference": ("", "tl.where(offs < n, offs, offs - n)"),
    "a negation": ("", "-offs"),
    "an inversion": ("", "~offs"),
    "a remainder of a difference": ("", "(offs - n) % 8"),
    "indices from memory": ("", "tl.load(i_ptr + offs)"),
    "a running sum of what memory holds": ("", "tl.cumsum(tl.load(i_ptr + offs), 0)"),
    "the result of an atomic": ("", "tl.atomic_add(i_ptr + offs, 1)"),
    "a helper that is called arange": ("", "arange(n, B)"),
    "a helper that is called cdiv": ("", "cdiv(offs, n)"),
    "part of a helper's tuple": ("_, left = behind(offs, n)", "left"),
    "a helper with branches": ("", "chosen(offs, n)"),
    "a number that a loop lowers": ("j = 3\nfor i in range(n):\n    j -= 1", "offs + j"),
    "a number that a while loop lowers": ("j = n\nwhile j > -3:\n    j -= 2", "offs + j"),
    "an index by a negative step": ("j = 0\nfor i in tl.range(2, -5, step=-1):\n    j = i", "offs + j"),
    "an index of an unrolled loop": ("j = offs\nfor i in tl.static_range(2, -5, -1):\n    j = offs + i", "j"),
    "a divided index": ("j = 0\nfor i in range(-5, n):\n    j = i // 2", "offs + j"),
    "cdiv that overflows": ("", "offs + tl.cdiv(n, 64)"),
    "a number that a loop raises, who knows how far": ("j = 0\nfor i in range(n):\n    j += 2", "offs + j"),
}
NOT_NEGATIVE = {
    "a sum": ("", "offs + n"),
    "a product": ("", "offs * n"),
    "a remainder of an argument": ("", "offs + n % 7"),
    "a quotient": ("", "(offs + 3) // 2"),
    "a choice": ("", "tl.where(offs < n, offs, 0)"),
    "bits": ("", "(offs - n) & 63"),
    "the greatest of a difference": ("", "tl.maximum(offs - n, 0)"),
    "the least": ("", "tl.minimum(offs, n)"),
    "bytes that are widened": ("", "(step + 200).to(tl.int32)"),
    "a product of 64 bits": ("", "offs.to(tl.int64) * n"),
    "a shift": ("", "offs << 2"),
    "whole blocks": ("", "tl.cdiv(offs, 2)"),
    "a sum of flags": ("", "offs + tl.sum((offs < n).to(tl.int32), 0)"),
    "an index": ("j = 0\nfor i in range(n):\n    j = i", "offs + j"),
    "an index that goes down": ("j = 0\nfor i in range(n, -1, -1):\n    j = i", "offs + j"),
    "an index by a named step": ("j = 0\nfor i in tl.range(0, n, step=2):\n    j = i", "offs + j"),
    "a guarded argument": ("j = offs\nif n >= 5:\n    j = offs + (n - 5) * 0 + n", "j"),
    "a guarded difference": ("m = n % 9\nj = 0\nif n >= m:\n    j = n - m", "offs + j"),
    "part of a tuple": ("right, _ = behind(offs, n)", "right"),
}
SIGNATURE = {"x_ptr": "*fp32", "i_ptr": "*i32", "y_ptr": "*fp32", "S": "i32", "n": "i32"}


def source_of(before: str, added: str) -> str:
    lines = "\n".join("        " + line for line in before.splitlines())
    return dedent(SOURCE.replace("{before}", lines).replace("{added}", added))


def spec_of(n: int, index: int = 3):
    values = {"x_ptr": tensor(4096), "i_ptr": tensor(64, range=[index, index]), "y_ptr": tensor(64)}
    return launch("kernel", SIGNATURE, {"B": 64}, values=values | {"S": 2048, "n": n})


def moves_the_base(text: str) -> bool:
    return "buffer_load(row_ptr," in text.replace("\n", "").replace(" ", "")


@pytest.mark.one_of(4)
@pytest.mark.parametrize("case", MAYBE_NEGATIVE)
def test_what_may_be_negative_is_added_to_the_tensors_start(case: str, tmp_path: Path):
    text = translate(tmp_path, source_of(*MAYBE_NEGATIVE[case]), spec_of(3), target="gfx950").text
    assert not moves_the_base(text), text


@pytest.mark.one_of(4)
@pytest.mark.parametrize("case", NOT_NEGATIVE)
def test_what_cannot_be_negative_is_added_to_a_moved_pointer(case: str, tmp_path: Path):
    text = translate(tmp_path, source_of(*NOT_NEGATIVE[case]), spec_of(3), target="gfx950").text
    assert moves_the_base(text), text


@pytest.mark.parametrize(
    "case, n, index",
    [
        ("unsigned bytes as signed ones", 3, 3),
        ("a difference of unsigned numbers", 40, 3),
        ("64 bits cut to 32", 31, 3),
        ("a remainder of a product", 1103515245, 3),
        ("a product that is shifted back", 2**26 + 1, 3),
        ("indices from memory", 3, -7),
        ("a helper that is called arange", 40, 3),
        ("part of a helper's tuple", 40, 3),
        ("a number that a loop lowers", 40, 3),
        ("an index by a negative step", 3, 3),
    ],
)
def test_negative_offsets_read_what_the_source_reads(case: str, n: int, index: int, tmp_path: Path):
    text = translate(tmp_path, source_of(*MAYBE_NEGATIVE[case]), spec_of(3), target="gfx1250").text
    (tmp_path / "output.py").write_text(text)
    files = str(tmp_path / "source.py"), str(tmp_path / "output.py")
    answer = validate_launch(*files, spec_of(n, index), "gfx1250")
    assert answer["status"] in ("validated", "not_runnable"), (answer, text)


# A base before the tensor ------------------------------------------------------------------------------------------------

BEFORE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
        offs = tl.arange(0, B)
        row_ptr = x_ptr {moved}
        tl.store(y_ptr + offs, tl.load(row_ptr + ({added})))
""")


@pytest.mark.parametrize(
    "moved, added, kept, checked",
    [
        ("- n", "offs + n", True, "B + n - 1 <= 2**29 - 2"),  # the offsets may be larger than the tensor
        ("- n", "offs + tl.load(y_ptr).to(tl.int32, bitcast=True) % 64", False, ""),
        ("- n", "offs + 64", True, ""),
        ("+ (n - 5)", "offs * n", True, "(B - 1) * n <= 2**29 - 2"),
        ("+ n", "offs * n", True, "(B - 1) * n <= 2**31 - 1"),
        ("- 64", "offs + 64", True, ""),
    ],
)
def test_offsets_from_a_base_before_the_tensor_reach_it(moved, added, kept, checked, tmp_path):
    spec = launch("kernel", {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}, {"B": 64})
    text = translate(tmp_path, BEFORE.format(moved=moved, added=added), spec, target="gfx950").text
    assert moves_the_base(text) == kept, text
    assert f"#   assumes {checked}\n" in text if checked else " <= 2**" not in text, text


# Pointers in a variable: of offsets so far from such a base some would not reach the tensor.
FAR = "offs * 16777216"
MOVED_VARIABLES = {
    "moved back": (f"ptrs = x_ptr + {FAR}\nptrs -= 1073741824", "ptrs"),
    "before the tensor": (f"ptrs = x_ptr - n + {FAR}", "ptrs"),
    "before it at the use": (f"ptrs = x_ptr + m + {FAR}", "ptrs - n"),
    "of a pointer that is": (f"row_ptr = x_ptr - n\nptrs = row_ptr + {FAR}", "ptrs"),
    "far away at the use": ("ptrs = x_ptr - n + offs", f"ptrs + {FAR}"),
    "of another variable": (f"row_ptrs = x_ptr - n + offs\nptrs = row_ptrs + {FAR}", "ptrs"),
    "in a loop": ("ptrs = x_ptr - n + offs\nfor k in range(m):\n    ptrs += offs", "ptrs"),
    "by a loop": (f"ptrs = x_ptr + n + {FAR}\nfor k in range(m):\n    ptrs -= B", "ptrs"),
}
REACHING_VARIABLES = {
    "near": ("ptrs = x_ptr - n + offs", "ptrs", ""),
    "behind the start": (f"ptrs = x_ptr + n + {FAR}", "ptrs", "n >= 0"),
    "a product that is checked": ("ptrs = x_ptr - n + offs * m", "ptrs", "(B - 1) * m <= 2**29 - 2"),
    "in a loop": ("ptrs = x_ptr + n + offs\nfor k in range(m):\n    ptrs += offs\n    ptrs += n", "ptrs", "n >= 0"),
}


def variables(lines: str, used: str) -> str:
    body = "\n".join("    " + line for line in [*lines.splitlines(), f"x = tl.load({used}, mask=offs < m, other=0.0)"])
    kernel = "@triton.jit\ndef kernel(x_ptr, y_ptr, n, m, B: tl.constexpr):\n    offs = tl.arange(0, B)\n"
    return f"import triton\nimport triton.language as tl\n\n\n{kernel}{body}\n    tl.store(y_ptr + offs, x)\n"


def buffer_bases(source: str, folder: Path) -> tuple[list[str], str]:
    """(bases of the buffer loads, the output)"""
    spec = launch("kernel", {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "m": "i32"}, {"B": 128})
    text = translate(folder, source, spec, target="gfx950").text
    return [part.split(",")[0].strip() for part in text.split("buffer_load(")[1:]], text


@pytest.mark.parametrize("case", MOVED_VARIABLES)
def test_pointers_of_which_some_may_not_be_reached_are_not_read_from_a_moved_base(case: str, tmp_path: Path):
    bases, text = buffer_bases(variables(*MOVED_VARIABLES[case]), tmp_path)
    assert bases in ([], ["x_ptr"]), text


@pytest.mark.parametrize("case", REACHING_VARIABLES)
def test_pointers_that_are_reached_are_read_from_a_moved_base(case: str, tmp_path: Path):
    lines, used, assumed = REACHING_VARIABLES[case]
    bases, text = buffer_bases(variables(lines, used), tmp_path)
    assert bases == ["ptrs_base"], text
    assert assumed in text and ("2**29 - 2" in assumed or "2**29 - 2" not in text), text


def test_a_check_that_the_launch_itself_would_not_pass_is_no_way_out(tmp_path: Path):
    """`(B - 1) * 16777216 <= 2**29 - 2` is false for the B that is translated for."""
    source = BEFORE.format(moved="- n", added="offs * 16777216")
    spec = launch("kernel", {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}, {"B": 64})
    text = translate(tmp_path, source, spec, target="gfx950").text
    assert not moves_the_base(text) and "16777216 <=" not in text, text
