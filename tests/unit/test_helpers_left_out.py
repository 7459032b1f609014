"""A private helper goes once its code stands in the kernels, unless something may still want it."""

from __future__ import annotations

import pytest

from translation_of import compiled, dedent, launch, translate

SOURCE = dedent('''
    import triton
    import triton.language as tl

    # Where blocks begin.


    # The first column of a block.
    @triton.jit
    def _first(i, BLOCK: tl.constexpr):
        return i * BLOCK


    # A block of a row.
    @triton.jit
    def _block(base, n, i, BLOCK: tl.constexpr):
        """What is in it."""
        return tl.make_block_ptr(base, (n,), (1,), (_first(i, BLOCK),), (BLOCK,), (0,))


    @triton.jit
    def copy_kernel(x, y, n, BLOCK: tl.constexpr):
        i = tl.program_id(0)
        tl.store(_block(y, n, i, BLOCK), tl.load(_block(x, n, i, BLOCK), boundary_check=(0,)), boundary_check=(0,))
    ''')
COPY = launch("copy_kernel", {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"BLOCK": 256})


def test_it_goes_with_its_comments_and_what_only_it_imported(tmp_path):
    text = translate(tmp_path, SOURCE, COPY).text
    assert "def _block" not in text and "# A block of a row." not in text and "triton.language as tl" not in text
    assert "# Where blocks begin." in text
    assert compiled(tmp_path, text, COPY).metrics is not None


def test_what_it_called_has_no_second_name(tmp_path):
    text = translate(tmp_path, SOURCE, COPY).text
    assert text.count("def _first(") == 1 and "@gluon.jit\ndef _first(" in text and "_first_gluon" not in text


# What may still want `_block`, below the kernel.
WANTED = {
    "host code": "def host():\n    return _block.fn\n",
    "a name in text": '__all__ = ["_block"]\n',
    "an attribute": "def host(module):\n    return module._block\n",
    "an annotation": 'def host(f: "_block"):\n    return f\n',
    "another kernel": "@triton.jit\ndef other(x, n):\n    tl.store(_block(x, n, 0, 64), 0.0)\n",
}


@pytest.mark.parametrize("what", WANTED)
def test_it_stays_for_whoever_may_want_it(tmp_path, what):
    text = translate(tmp_path, f"{SOURCE}\n\n{WANTED[what]}", COPY).text
    assert "@triton.jit\ndef _block(base, n, i, BLOCK: tl.constexpr):" in text
    assert "@triton.jit\ndef _first(" in text and "import triton.language as tl" in text


OTHERS = {
    "public": ("_block(", "block("),
    "under another decorator": ("# A block of a row.\n", "@registered\n"),
    "a name of two functions": ("# A block of a row.\n", "def _block():\n    pass\n\n\n"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_others_stay(tmp_path, what):
    source = SOURCE.replace("# Where blocks begin.", "def registered(f):\n    return f").replace(*OTHERS[what])
    text = translate(tmp_path, source, COPY).text
    assert "block(base, n, i, BLOCK: tl.constexpr)" in text, text
