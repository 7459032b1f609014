"""The slot that a tile ahead goes into: one form for rings of any length, by a function with a name of its own."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

VALIDATE = Path(__file__).resolve().parent.parent / "validate"
sys.path.insert(0, str(VALIDATE))

from gluonize.judge.lower.jobs import lower_file  # noqa: E402
from gluonize.judge.verdict import validate_launch  # noqa: E402
from gluonize.request import TranslateRequest  # noqa: E402
from gluonize.translation import translate_kernel  # noqa: E402
from planted import KERNELS, matmul_launch  # noqa: E402


def translated(path: Path, target: str = "gfx950") -> str:
    text = translate_kernel(TranslateRequest(str(path), target, launches=(matmul_launch(),))).text
    assert text is not None
    return text


@pytest.mark.compile
@pytest.mark.parametrize("buffers", [3, 4])
def test_a_longer_ring_takes_no_longer_loop(buffers: int, tmp_path: Path):
    """With `gl.where(slot == 0, NUM_BUFFERS - 1, slot - 1)`: 103 instructions for two slots, 110 for three, 107 for four."""
    file = tmp_path / "translated.py"
    file.write_text(translated(KERNELS / "matmul.py"))
    two, more = (lower_file(str(file), matmul_launch(buffers=n), "gfx950").metrics.loop for n in (2, buffers))
    assert more.mma == two.mma and more.insns <= two.insns


TAKEN = {
    "function of the host": (
        "import triton\n",
        "import triton\n\n\ndef direct_copy(slot, count):\n    return slot\n\n",
    ),
    "variable": ("    acc = tl.zeros", "    direct_copy = 1\n    acc = tl.zeros"),
}


@pytest.mark.one_of(2)
@pytest.mark.compile
@pytest.mark.parametrize("case", TAKEN)
def test_names_of_the_source_stay_its_own(case: str, tmp_path: Path):
    source, before = (KERNELS / "matmul.py").read_text(), TAKEN[case][0]
    assert source.count(before) == 1
    path, out = tmp_path / "source.py", tmp_path / "translated.py"
    path.write_text(source.replace(*TAKEN[case]))
    text = translated(path)
    out.write_text(text)
    assert "= direct_copy_2(a_shared, " in text
    functions = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert functions.count("direct_copy_2") == 1
    assert functions.count("direct_copy") == (case == "function of the host")
    assert validate_launch(str(path), str(out), matmul_launch(), "gfx950")["status"] == "validated"


@pytest.mark.compile
def test_a_name_in_another_file_that_the_kernel_takes_a_helper_from(tmp_path: Path, monkeypatch):
    """Helpers of other files are copied, with what they mention."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "ring_helpers.py").write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef direct_copy(x):\n    return x * 2\n"
    )
    source = (KERNELS / "matmul.py").read_text()
    source = source.replace("import triton\n", "import triton\nfrom ring_helpers import direct_copy\n", 1)
    product = next(line for line in source.splitlines() if "tl.dot(" in line)
    path, out = tmp_path / "source.py", tmp_path / "translated.py"
    path.write_text(source.replace(product, f"{product}\n        acc = direct_copy(acc)"))
    text = translated(path)
    out.write_text(text)
    assert "= direct_copy_2(" in text and "acc = direct_copy(acc)" in text
    assert validate_launch(str(path), str(out), matmul_launch(), "gfx950")["status"] == "validated"
