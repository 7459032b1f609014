"""Block pointers are written as tensors of pointers and masks that read and store the same elements."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from block_pointer_machine import Memory, run
from gluonize.diagnostics import TranslationError
from gluonize.read.block_pointers import function_edits, needs, offset_signs, part_texts
from gluonize.read.kernels.load import load_kernel
from gluonize.read.text.moved_lines import file_line
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

HEAD = "import triton\nimport triton.language as tl\n\n\n"
SIGNATURE = "def kernel(x, y, M, N, i, j, sm, sn, flag, BM: tl.constexpr, BN: tl.constexpr):\n"
MAKE = "tl.make_block_ptr(x, (M, N), (sm, sn), ({}, {}), (BM, BN), (1, 0))"
TILE = MAKE.format("i", "j")
OUT = "    o = tl.make_block_ptr(y, (BM, BN), (BN, 1), (0, 0), (BM, BN), (1, 0))\n    tl.store(o, total)\n"
HELPER = """@triton.jit
def step(p, total, BN: tl.constexpr):
    for n in range(0, 3):
        total += tl.load(p, boundary_check=(0, 1))
        p = tl.advance(p, (1, BN))
    return total, p


@triton.jit
def made(x, M, N, sm, sn, i, BM: tl.constexpr, BN: tl.constexpr, flag):
    if flag:
        return tl.make_block_ptr(x, (M, N), (sm, sn), (i, 0), (BM, BN), (1, 0))
    return tl.make_block_ptr(x, (N, M), (sn, sm), (0, i), (BM, BN), (1, 0))


@triton.jit
def built(x, M, N, sm, sn, i, BM: tl.constexpr, BN: tl.constexpr):
    row = i + 1
    return row, tl.make_block_ptr(x, (M, N), (sm, sn), (row, 0), (BM, BN), (1, 0))


@triton.jit
def checked(p, first: tl.constexpr, pad: tl.constexpr):
    if first:
        return tl.load(p, boundary_check=(0,), padding_option=pad)
    return tl.load(p)


"""

# The body of a kernel that adds tiles up in `total`.
FORMS = {
    "a load": f"    p = {TILE}\n    total = tl.load(p, boundary_check=CHECK, padding_option=PAD)\n",
    "a store": f"    total = tl.zeros((BM, BN)) + 5\n    p = {TILE}\n    tl.store(p, total, boundary_check=CHECK)\n",
    "in place": f"    total = tl.load({TILE}, boundary_check=CHECK)\n",
    "advanced along both": f"""    p = {TILE}
    total = tl.zeros((BM, BN))
    for k in range(0, 4):
        total += tl.load(p, boundary_check=CHECK, padding_option=PAD)
        p = tl.advance(p, (k, 2))
        x += 100000
""",
    "under another name": f"""    p = {TILE}
    q = tl.advance(p, (BM, 0))
    total = tl.load(p, boundary_check=CHECK) + tl.load(q, boundary_check=(1,)) * 3
    r = q
    r = r.advance((1, 1))
    total += tl.load(r.advance([0, BN]), boundary_check=CHECK) * 5 + tl.load(q) * 7
""",
    "made in a loop": f"""    total = tl.zeros((BM, BN))
    for k in range(0, 2):
        p = {MAKE.format("i + k * BM", "j - k")}
        total += tl.load(p, boundary_check=CHECK)
        if k > 0:
            p = tl.advance(p, (0, -2))
        total += tl.load(p, boundary_check=CHECK) * 3
""",
    "in branches": f"""    if flag:
        p = {TILE}
    else:
        p = tl.make_block_ptr(x + 1, (N, M + 1), (1, sm), (j, i), (BM, BN), (0, 1))
    total = tl.load(p, boundary_check=CHECK, padding_option=PAD)
    p = tl.advance(p, (0, BN))
    total += tl.load(p, boundary_check=CHECK) * 3
""",
    "chosen in an expression": f"""    p = {TILE} if flag else tl.make_block_ptr(x, (N, M), (1, sm), (j, i), (BM, BN), (0, 1))
    total = tl.load(p, boundary_check=CHECK if flag else ())
""",
    "in tuples": f"""    p, n, q = {TILE}, 3, {MAKE.format("0", "i")}
    total = tl.load(p, boundary_check=CHECK) * n + tl.load(q, boundary_check=CHECK)
""",
    "sizes that change": f"""    p = {TILE}
    N = N + 4
    sm = sm * 2
    total = tl.load(p, boundary_check=CHECK)
    p = tl.advance(p, (1, 1))
    total += tl.load(p, boundary_check=CHECK) * 3
""",
    "read before it is made again": f"""    total = tl.zeros((BM, BN))
    p = {TILE}
    for k in range(0, 3):
        N -= 1
        total += tl.load(p, boundary_check=CHECK)
        p = tl.make_block_ptr(x, (M, N), (sm, sn), (i, j + k), (BM, BN), (1, 0))
        p = tl.advance(p, (0, 1))
""",
    "handed to a helper and back": f"""    total = tl.zeros((BM, BN))
    total, p = step({TILE}, total, BN)
    total += tl.load(p, boundary_check=CHECK) * 3
""",
    "handed by name": f"    total, _ = step(total=tl.zeros((BM, BN)), BN=BN, p={TILE})\n",
    "made by a helper": """    p = made(x, M, N, sm, sn, i, BM, BN, flag)
    total = tl.load(p, boundary_check=CHECK) + tl.load(made(x, M, N, sm, sn, j, BM, BN, flag), boundary_check=CHECK) * 3
""",
    "made from what a helper works out": """    row, p = built(x, M, N, sm, sn, i, BM, BN)
    total = tl.load(p, boundary_check=CHECK) * row
    p = tl.advance(p, (1, 2))
    total += tl.load(p, boundary_check=(1,), padding_option=PAD)
""",
    "checked by a helper": f"    p = {TILE}\n    total = checked(p, True, PAD) * 2 + checked(p, False, PAD)\n",
    "absent": f"""    if flag:
        p = {TILE}
    else:
        p = None
    total = tl.zeros((BM, BN))
    if p is not None:
        total += tl.load(p, boundary_check=CHECK)
""",
    "one dimension": """    p = tl.make_block_ptr(base=x, shape=(N,), strides=(sn,), offsets=(j,), block_shape=(BN,), order=(0,))
    total = tl.load(p, boundary_check=(0,), padding_option=PAD)[None, :] + tl.load(tl.advance(p, (2,)), boundary_check=0)[None, :]
""",
    "three dimensions": """    p = tl.make_block_ptr(x, (2, M, N), (sm, sn, 1), (i, 0, j), (2, BM, BN), (2, 1, 0))
    total = tl.sum(tl.load(p, boundary_check=(0, 2), padding_option=PAD), 0)
""",
}
NUMBERS = itertools.count()
CHECKS = ("()", "(0,)", "[1]", "(0, 1)", "(1, 0)")


def source_of(form: str, check: str = "(0, 1)", padding: str = '"zero"', head: str = HEAD) -> str:
    body = FORMS[form].replace("CHECK", check).replace("PAD", padding)
    return f"{head}{HELPER}@triton.jit\n{SIGNATURE}{body}{OUT}"


def written(text: str, tmp_path) -> str:
    """A source with its block pointers as what stands for them."""
    file = tmp_path / f"source_{next(NUMBERS)}.py"
    file.write_text(text)
    loaded = load_kernel(str(file), "kernel")
    out = "\n\n".join(fn.src for fn in (*(h.value for h in loaded.helpers), loaded.fn))
    assert "make_block_ptr" not in out.split("def kernel")[1] and "advance" not in out.split("def kernel")[1]
    return out


def arguments(M, N, i, j, sm, sn, flag) -> dict:
    numbers = {"M": M, "N": N, "i": i, "j": j, "sm": sm, "sn": sn, "flag": flag}
    return {"x": Memory, "y": Memory} | {name: np.int32(value) for name, value in numbers.items()} | {"BM": 2, "BN": 4}


TABLE = [
    arguments(*numbers)
    for numbers in [
        (3, 6, 0, 0, 10, 1, 1), (3, 5, 2, 3, 10, 1, 0), (2, 4, -1, -2, 7, 3, 1), (0, 9, 1, 1, 5, 1, 0),
        (2**31 - 1, 2**31 - 1, 2**20, 5, 2**16, 1, 1), (9, 18, 1, 8, 2**30, 3, 0), (5, 5, 9, 0, 0, 1, 1),
    ]
]  # fmt: skip


def differences(text: str, out: str, table=None) -> list[dict]:
    """The arguments for which a source and what it was written as do not store the same."""
    return [a for a in table or TABLE if run(text, "kernel", 1, a) != run(out, "kernel", 1, a)]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("form", FORMS)
def test_the_same_elements_are_read_and_stored(form, tmp_path):
    for check, padding in itertools.product(CHECKS, ('""', '"zero"', '"nan"')):
        if (check, padding) in itertools.product(CHECKS[:3], ('""', '"zero"')) and "PAD" not in FORMS[form]:
            continue
        text = source_of(form, check, padding)
        assert not differences(text, written(text, tmp_path)), (check, padding)


numbers = st.integers(-6, 9)
wide = st.one_of(st.integers(0, 9), st.sampled_from([2**15, 2**29, 2**31 - 1]))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(FORMS)),
    st.sampled_from(CHECKS),
    numbers,
    numbers,
    numbers,
    numbers,
    wide,
    wide,
    st.booleans(),
)
@example("advanced along both", "(0, 1)", 9, 9, 0, 0, 2**31 - 1, 1, True)
def test_drawn_sizes_offsets_and_strides(tmp_path, form, check, M, N, i, j, sm, sn, flag):
    text = source_of(form, check)
    assert not differences(text, written(text, tmp_path), [arguments(M, N, i, j, sm, sn, int(flag))])


def _mask_of_other(monkeypatch):
    mask = part_texts.PartTexts.compared
    monkeypatch.setattr(
        part_texts.PartTexts, "compared", lambda self, web, n, d=None: mask(self, web, web.rank - 1 - n, d)
    )


def _no_second_check(monkeypatch):
    mask = part_texts.PartTexts.mask
    monkeypatch.setattr(
        part_texts.PartTexts, "mask", lambda self, web, dimensions, d=None: mask(self, web, tuple(dimensions)[:1], d)
    )


def _advanced_twice(monkeypatch):
    step = part_texts.PartTexts.step
    monkeypatch.setattr(part_texts.PartTexts, "step", lambda self, *a: f"2 * ({step(self, *a)})")


def _offsets_stay(monkeypatch):
    defined = part_texts.PartTexts.defined
    monkeypatch.setattr(
        part_texts.PartTexts,
        "defined",
        lambda self, *a: [s for s in defined(self, *a) if not ("offs" in s and "+=" in s)],
    )


def _no_lower_bound(monkeypatch):
    monkeypatch.setattr(offset_signs.Signs, "not_negative", lambda self, node: True)


def _narrow(monkeypatch):
    made = part_texts.PartTexts.made
    monkeypatch.setattr(
        part_texts.PartTexts, "made", lambda self, *a: [s.replace(".to(tl.int64)", "") for s in made(self, *a)]
    )


def _narrow_step(monkeypatch):
    step = part_texts.PartTexts.step
    monkeypatch.setattr(
        part_texts.PartTexts,
        "step",
        lambda self, *a: step(self, *a).replace("tl.cast(", "(").replace(", tl.int64)", ")"),
    )


def _sizes_of_later(monkeypatch):
    monkeypatch.setattr(part_texts.PartTexts, "is_stable", lambda self, *a: True)


def _zeros(monkeypatch):
    monkeypatch.setattr(function_edits._FunctionEdits, "padding", lambda self, node: "0")


def _steps_of_other(monkeypatch):
    monkeypatch.setattr(part_texts, "steps", lambda *a: list(reversed(needs.steps(*a))))


PLANTED = {
    "the mask of the other dimension": (_mask_of_other, "a load"),
    "a check that is missing": (_no_second_check, "a store"),
    "advanced twice": (_advanced_twice, "advanced along both"),
    "offsets that are not advanced": (_offsets_stay, "advanced along both"),
    "no lower bound": (_no_lower_bound, "a load"),
    "32-bit offsets": (_narrow, "a load"),
    "32-bit steps": (_narrow_step, "advanced along both"),
    "sizes of a later place": (_sizes_of_later, "sizes that change"),
    "sizes of a later round": (_sizes_of_later, "read before it is made again"),
    "steps of the other dimension": (_steps_of_other, "advanced along both"),
    "another padding": (_zeros, "a load"),
}


@pytest.mark.parametrize("mistake", PLANTED)
def test_planted_mistakes_are_found(mistake, tmp_path, monkeypatch):
    plant, form = PLANTED[mistake]
    plant(monkeypatch)
    text = source_of(form, padding='"nan"')
    try:
        found = differences(text, written(text, tmp_path))
    except (NameError, UnboundLocalError):
        found = ["it does not run"]
    assert found


REFUSED = {
    "sizes in a variable": (
        "    shape = (M, N)\n    p = tl.make_block_ptr(x, shape, (sm, 1), (0, 0), (BM, BN), (1, 0))\n    total = tl.load(p)\n",
        2,
        "written out",
    ),
    "another mask": (f"    p = {TILE}\n    total = tl.load(p, mask=tl.arange(0, BN)[None, :] < 3)\n", 2, "has `mask`"),
    "one name for two things": (
        f"    if flag:\n        p = {TILE}\n    else:\n        p = x + tl.arange(0, BN)\n    total = tl.load(p)\n",
        5,
        "or something else",
    ),
    "an unknown check": (f"    p = {TILE}\n    total = tl.load(p, boundary_check=(0, M))\n", 2, "not known"),
    "dimensions that are not there": (f"    p = {TILE}\n    total = tl.load(p, boundary_check=(2,))\n", 2, "not known"),
    "steps of other dimensions": (
        f"    p = {TILE}\n    p = tl.advance(p, (1,))\n    total = tl.load(p)\n",
        2,
        "other dimensions",
    ),
    "another use": (f"    p = {TILE}\n    total = tl.load(p + 1)\n", 2, "another way"),
    "another padding": (
        f'    p = {TILE}\n    total = tl.load(p, boundary_check=(0,), padding_option="one")\n',
        2,
        "padding_option",
    ),
    "a helper with and without": (
        f"    p = {TILE}\n    total = checked(p, True, '') + checked(x + tl.arange(0, BN)[None, :], False, '')\n",
        2,
        "with and without",
    ),
    "places that are changed": (
        f"    p = {TILE}\n    q = {TILE}\n    p, q = q, p\n    total = tl.load(p)\n",
        3,
        "change places",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_counterpart_is_refused_at_its_line(case, tmp_path):
    body, line, words = REFUSED[case]
    file = tmp_path / "source.py"
    text = f"{HEAD}{HELPER}@triton.jit\n{SIGNATURE}{body}{OUT}"
    file.write_text(text)
    with pytest.raises(TranslationError) as refused:
        load_kernel(str(file), "kernel")
    (found,) = refused.value.diagnostics
    first = text.split("\n").index(SIGNATURE.rstrip()) + 1
    assert (found.code, found.line - first) == ("block-pointer", line), found
    assert words in found.message and found.why and found.help


def test_lines_are_those_of_the_source(tmp_path):
    file = tmp_path / "source.py"
    text = source_of("advanced along both")
    file.write_text(text)
    fn = load_kernel(str(file), "kernel").fn
    lines, new = text.split("\n"), fn.src.split("\n")

    def place(words: str) -> str:
        return lines[file_line(fn, next(n for n, line in enumerate(new, 1) if words in line)) - 1].strip()

    assert place("p_offs_n = ") == place("p_ptrs = ") == f"p = {TILE}"
    assert place("p_offs_m += ") == "p = tl.advance(p, (k, 2))"
    assert place("x += 100000") == "x += 100000" and place("def kernel") == SIGNATURE.rstrip()


def test_what_is_never_negative_has_no_lower_bound(tmp_path):
    body = f"""    total = tl.zeros((BM, BN))
    for k in range(0, N, BN):
        p = {MAKE.format("tl.program_id(0) * BM", "k")}
        total += tl.load(p, boundary_check=(0, 1))
    q = {MAKE.format("tl.program_id(0) - 1", "i")}
    total += tl.load(q, boundary_check=(0, 1))
"""
    out = written(f"{HEAD}{HELPER}@triton.jit\n{SIGNATURE}{body}{OUT}", tmp_path)
    assert "p_mask = (p_offs_m[:, None] < M) & (p_offs_n[None, :] < N)" in out
    assert out.count(">= 0") == 2 and "(q_offs_m[:, None] >= 0) & (q_offs_m[:, None] < M)" in out


def test_a_dimension_that_each_tile_has_whole_needs_no_mask(tmp_path):
    body = """    p = tl.make_block_ptr(x, (M, BN), (sm, 1), (i, 0), (BM, BN), (1, 0))
    total = tl.load(p, boundary_check=(0, 1))
    p = tl.advance(p, (1, 0))
    total += tl.load(p, boundary_check=(1,))
    q = tl.make_block_ptr(x, (M, BN), (sm, 1), (i, 0), (BM, BN), (1, 0))
    q = tl.advance(q, (0, 1))
    total += tl.load(q, boundary_check=(1,)) * 3
"""
    text = f"{HEAD}{HELPER}@triton.jit\n{SIGNATURE}{body}{OUT}"
    out = written(text, tmp_path)
    assert "total += tl.load(p_ptrs)\n" in out and "p_offs_n[None, :] <" not in out and "q_offs_n[None, :] < BN" in out
    assert not differences(text, out)


def test_arguments_on_lines_of_their_own_stay_so(tmp_path):
    body = f"""    p = {TILE}
    total = tl.load(
        p,
        boundary_check=(0,),
        padding_option="zero",
        cache_modifier=".cg",
    )
"""
    out = written(f"{HEAD}{HELPER}@triton.jit\n{SIGNATURE}{body}{OUT}", tmp_path)
    assert "tl.load(\n        p_ptrs,\n        mask=p_mask,\n        other=0,\n        cache_modifier=" in out


def test_comments_within_a_call_are_kept(tmp_path):
    body = f"""    p = tl.make_block_ptr(
        x, (M, N), (sm, sn),  # all of it
        (i, j), (BM, BN), (1, 0),
    )  # the tile
    total = tl.load(p)
"""
    out = written(f"{HEAD}{HELPER}@triton.jit\n{SIGNATURE}{body}{OUT}", tmp_path)
    assert "    # all of it\n    p_offs_m = " in out and "  # the tile\n    total = tl.load(p_ptrs)" in out


@pytest.mark.parametrize("asked", ["p.dtype.element_ty", "p.type.element_ty.element_ty", "p.type.element_ty"])
def test_the_type_of_a_tile_is_that_of_its_elements(tmp_path, asked):
    """To a block pointer the first `element_ty` is the type of its tile, and a conversion to that is one to the type of its elements."""
    body = f"    p = {MAKE.format(0, 0)}\n    tl.store(p, (tl.load(p) * 2.0).to({asked}))\n"
    text = written(HEAD + "@triton.jit\n" + SIGNATURE + body, tmp_path)
    assert ".to(x.dtype.element_ty)" in text or "_ptrs.dtype.element_ty)" in text
