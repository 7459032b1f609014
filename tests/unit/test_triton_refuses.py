"""What Triton itself refuses is reported where it is, in helpers too."""

import pytest
from translation_of import dedent, launch

from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def shifted(x):
        # Floats have no shifts.
        return x << 1


    @triton.jit
    def checked(x, B: tl.constexpr):
        tl.static_assert(B > 64)
        return x


    @triton.jit
    def kernel(x_ptr, B: tl.constexpr):
        o = tl.arange(0, B)
        x = tl.load(x_ptr + o)
        tl.store(x_ptr + o, FUNCTION)
    """)


@pytest.mark.parametrize(
    "function, line, why",
    [
        ("shifted(x)", 8, "invalid operands of type"),
        ("checked(x, B)", 13, "a static assertion is false"),
        ("x << 1", 21, "invalid operands of type"),
        ("tl.sort(x[:, None])", 21, ""),
    ],
    ids=["helper", "assertion", "kernel", "library"],
)
def test_place_and_reason(function, line, why, tmp_path):
    path = tmp_path / "source.py"
    path.write_text(SOURCE.replace("FUNCTION", function))
    spec = launch("kernel", {"x_ptr": "*fp32"}, {"B": 32})
    result = translate_kernel(TranslateRequest(str(path), "gfx950", launches=(spec,), keep_going=True))
    (found,) = [d for outcome in result.outcomes for d in outcome.diagnostics]
    assert (found.code, found.file, found.line) == ("triton-refuses", str(path), line)
    assert why in found.why
