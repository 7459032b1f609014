"""What stores say to the caches (`--choose store-cache=streamed`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

from gluonize.decide.choices.chosen import Choices, choices_of
from gluonize.judge.lower.jobs import lower_file

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def doubled(x_ptr, y_ptr, B: tl.constexpr):
        o = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y_ptr + o, tl.load(x_ptr + o) * 2)
    """)
STREAMED = choices_of(store_cache="streamed")
SIZE = 256


def written(folder: Path, choices: Choices, text: str = SOURCE, attrs: str = "DS", target: str = "gfx950") -> str:
    signature, given = {"x_ptr": "*fp32", "y_ptr": "*fp32"}, {name: tensor(SIZE) for name in ("x_ptr", "y_ptr")}
    spec = launch("doubled", signature, {"B": SIZE}, attrs=dict.fromkeys(signature, attrs), values=given)
    made = validated(folder, text, spec, target, chosen=(("doubled", choices),))
    lower_file(str(folder / "output.py"), spec, target)
    return made


@pytest.mark.compile
@pytest.mark.parametrize("target", ["gfx942", "gfx950", "gfx1250", "gfx1100", "gfx1201"])
def test_a_store_says_that_nothing_reads_it_again(target: str, tmp_path: Path):
    assert 'y_ptr, o, cache=".cs")' in written(tmp_path, STREAMED, target=target)


@pytest.mark.compile
def test_a_store_by_pointers_too(tmp_path: Path):
    assert 'cache_modifier=".cs")' in written(tmp_path, STREAMED, attrs="D")


@pytest.mark.compile
@pytest.mark.parametrize(
    "choices, more",
    [
        (Choices(), ""),
        (STREAMED, ', cache_modifier=".wt"'),
        (STREAMED, ', eviction_policy="evict_last"'),
    ],
    ids=["not asked for", "a modifier of the source", "a policy of the source"],
)
def test_what_the_source_says_is_kept(choices: Choices, more: str, tmp_path: Path):
    text = written(tmp_path, choices, SOURCE.replace(") * 2)", f") * 2{more})"))
    assert '".cs"' not in text and ('".wt"' in text) == (".wt" in more)


@pytest.mark.compile
def test_one_number_is_stored_as_it_was(tmp_path: Path):
    text = SOURCE.replace("tl.store(y_ptr + o, tl.load(x_ptr + o) * 2)", "tl.store(y_ptr, tl.load(x_ptr) * 2)")
    assert '".cs"' not in written(tmp_path, STREAMED, text)
