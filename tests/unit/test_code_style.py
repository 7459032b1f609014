"""Which formatter settings hold for an output, and that the output is as the formatter would have it."""

import json
from pathlib import Path

import black
import pytest
from gluonize.diagnostics import TranslationError
from gluonize.product.cli.edge import run
from gluonize.read.text.style import CodeStyle, style_of

SOURCE = '''"""Adds a row."""

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n, BLOCK: tl.constexpr):
    """Adds."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)
'''
PACKED = SOURCE.replace("x_ptr, y_ptr, output_ptr, n, BLOCK", "\n    x_ptr, y_ptr, output_ptr,\n    n, BLOCK")
LAUNCH = {
    "id": "add",
    "kernel": "add_kernel",
    "signature": {"x_ptr": "*fp32", "y_ptr": "*fp32", "output_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"},
    "constexprs": {"BLOCK": 1024},
    "attrs": {"x_ptr": "D", "y_ptr": "D", "output_ptr": "D", "n": "D"},
    "options": {"num_warps": 4},
}
WHOLE = CodeStyle(88, True)


@pytest.mark.parametrize(
    "name, text, expected",
    [
        ("pyproject.toml", "[tool.black]\nline-length = 100\n", CodeStyle(100, True)),
        ("pyproject.toml", "[tool.black]\n", WHOLE),
        ("pyproject.toml", "[tool.black]\n[tool.ruff]\nline-length = 95\n", CodeStyle(95, True)),
        (
            "pyproject.toml",
            "[tool.black]\nskip-string-normalization = true\nskip_magic_trailing_comma = true\npreview = true\n"
            'target-version = ["py311"]\n',
            CodeStyle(88, True, True, True, True, ("py311",)),
        ),
        ("pyproject.toml", '[tool.black]\nextend-exclude = "/out/"\n', CodeStyle(88, False)),
        ("pyproject.toml", '[tool.black]\nextend-exclude = "/other/"\n', WHOLE),
        ("pyproject.toml", "[tool.ruff]\nline-length = 99\n", CodeStyle(99, None)),
        ("pyproject.toml", '[tool.ruff.format]\nquote-style = "single"\n', CodeStyle(88, True, True)),
        ("ruff.toml", 'line-length = 70\nextend-exclude = ["out"]\n', CodeStyle(70, False)),
        (".ruff.toml", "line-length = 70\n[format]\n", CodeStyle(70, True)),
        ("pyproject.toml", "[project]\nname = 'x'\n", CodeStyle(88, None)),
    ],
)
def test_the_settings_that_hold(tmp_path, name, text, expected):
    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text(text)
    assert style_of("nowhere.py", str(tmp_path / "out" / "k.py")) == expected


def test_the_output_s_project_comes_first_and_a_repository_ends_the_search(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.black]\nline-length = 60\n")
    for name, length in (("a", 70), ("b", 0)):
        (tmp_path / name / ".git").mkdir(parents=True)
        if length:
            (tmp_path / name / "pyproject.toml").write_text(f"[tool.black]\nline-length = {length}\n")
        (tmp_path / name / "k.py").write_text("")
    of_a, of_b = str(tmp_path / "a" / "k.py"), str(tmp_path / "b" / "k.py")
    assert style_of(of_b, of_a).line_length == style_of(of_a, of_b).line_length == 70
    assert style_of(of_b) == CodeStyle(88, None)


@pytest.mark.parametrize(
    "text", ["[tool.black\n", '[tool.black]\nline-length = "wide"\n', '[tool.black]\nexclude = "("\n']
)
def test_settings_that_cannot_be_read_are_said(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(TranslationError, match="style-config|settings"):
        style_of("nowhere.py", str(tmp_path / "k.py"))


def test_without_settings_the_source_decides():
    assert CodeStyle(88, None).for_source(SOURCE) == WHOLE
    assert CodeStyle(88, None).for_source(PACKED) == CodeStyle(120, False)
    assert CodeStyle(100, False).for_source(SOURCE) == CodeStyle(100, False)


def test_one_definition_that_black_would_change_is_enough():
    style = CodeStyle(88, None)
    assert style.for_source(f"{SOURCE}\n\n{SOURCE}") == WHOLE
    assert style.for_source(f"{SOURCE}\n\n{SOURCE}\n\n{PACKED}") == CodeStyle(120, False)
    assert style.for_source(f"{SOURCE}\n\n\n{SOURCE}") == CodeStyle(120, False)  # only between definitions
    text = 'TEXT = """\n\n\ndef f(x : int):\n"""\n'  # no definition
    assert style.for_source(text) == WHOLE


def test_what_depends_on_the_version_of_python_is_left_to_the_whole_file():
    call = f"f(*arguments_{'x' * 40}, *rest_{'x' * 40})"
    old = black.format_str(f"def f():\n    return {call}\n", mode=black.Mode())
    new = black.format_str(old, mode=black.Mode(target_versions={black.TargetVersion.PY313}))
    assert old != new  # by a comma
    style, other = CodeStyle(88, None), "\n\ndef g(x):\n    match x:\n        case _:\n            pass\n"
    assert style.for_source(old) == WHOLE and style.for_source(new + other) == WHOLE
    assert style.for_source(old + other) == CodeStyle(120, False)


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "l.json").write_text(json.dumps([LAUNCH]))

    def translated(source, settings=""):
        (tmp_path / "add.py").write_text(source)
        (tmp_path / "pyproject.toml").write_text(settings)
        assert run(["translate", "add.py", "-t", "gfx942", "-l", "l.json", "--no-compile", "-q"]) == 0
        return Path("add_gfx942.py").read_text()

    return translated


def test_the_output_is_a_fixed_point_of_the_project_s_black(project):
    for length in (60, 100):
        for source in (SOURCE, PACKED):
            text = project(source, f"[tool.black]\nline-length = {length}\n")
            assert black.format_str(text, mode=black.Mode(line_length=length)) == text
            header = [line for line in text.splitlines() if line.startswith("#")]
            assert header and all(len(line) <= length for line in header)
    text = project(SOURCE)
    assert black.format_str(text, mode=black.Mode()) == text
    text = project(PACKED)
    assert "    x_ptr, y_ptr, output_ptr,\n" in text
