"""Headers name files outside of the output's folder by their tails; `check` and `update` find them again."""

import json
import shutil
from pathlib import Path

import pytest

from test_project_check import LAUNCH, SOURCE, check, edit, translate
from gluonize.product.cli.edge import run
from gluonize.product.project.digests import file_digest
from gluonize.product.project.output.paths import is_located, located, named
from gluonize.product.project.output.provenance import MARK, Provenance, parse_provenance, read_generated

RULE = """[[rule]]
callee = "mylib.fast_exp"
becomes = "gl.exp2({x} * 1.4426950408889634)"
layouts = "same"
example = ["y = fast_exp(x)", "y = gl.exp2(x * 1.4426950408889634)"]
near_miss = ["y = fast_exp(x, 2)", "y = fast_exp(x, 2)"]
"""
FACTOR = "import triton.language as tl\n\nFACTOR = tl.constexpr(2)\n"


@pytest.fixture
def far(tmp_path, monkeypatch):
    """A source with what it imports and its launches in `there/lib`, and its translation in `here/out`; no project has both."""
    monkeypatch.setenv("GLUONIZE_CACHE_DIR", str(tmp_path / ".cache"))
    lib, out = tmp_path / "there" / "x" / "lib", tmp_path / "here" / "y" / "out"
    for folder in (lib, out):
        folder.mkdir(parents=True)
    write_source(lib)
    monkeypatch.chdir(out)
    words = [str(lib / "scale.py"), "-t", "gfx942", "-l", str(lib / "l.json"), "-o", "scale.gfx942.py"]
    assert translate(*words) == 0
    return tmp_path


def write_source(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scale.py").write_text(SOURCE)
    (folder / "factor.py").write_text(FACTOR)
    (folder / "l.json").write_text(json.dumps({"version": 1, "launches": [LAUNCH]}))


@pytest.mark.parametrize(
    "path, output, name",
    [
        ("p/a.py", "p/a_gfx950.py", "a.py"),
        ("p/sub/a.py", "p/a_gfx950.py", "sub/a.py"),
        # Of one project: the way from the folder that both are in.
        ("p/src/deep/er/a.py", "p/gen/a_gfx950.py", ".../src/deep/er/a.py"),
        ("p/a.py", "p/gen/a_gfx950.py", ".../a.py"),
        # Of none: as far as its package goes, else with its folder.
        ("q/home/me/secret/a.py", "o/a_gfx950.py", ".../secret/a.py"),
        ("q/home/pkg/ops/fused/a.py", "o/a_gfx950.py", ".../pkg/ops/fused/a.py"),
        ("q/a.py", "q/gen/a_gfx950.py", ".../a.py"),
    ],
)
def test_names_of_files(tmp_path, monkeypatch, path, output, name):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "gluonize.toml").write_text("")
    for file in (
        path,
        output,
        "q/home/pkg/__init__.py",
        "q/home/pkg/ops/__init__.py",
        "q/home/pkg/ops/fused/__init__.py",
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("")
    assert named(str(tmp_path / path), str(tmp_path / output)) == name
    # Whatever was cut away is no more than what a folder can be given for.
    folder = str(tmp_path / path).removesuffix(name.removeprefix(".../"))
    assert Path(located(name, str(tmp_path / output), (folder,))) == tmp_path / path


def test_a_header_holds_no_path_to_another_folder(far):
    text = Path("scale.gfx942.py").read_text()
    own = [line for line in text.splitlines() if line.startswith(MARK)]
    assert "source=.../lib/scale.py:" in own[0] and "launches=.../lib/l.json:" in " ".join(own)
    assert not any(part in text for part in (str(far), "there", "here", "../.."))
    found = read_generated("scale.gfx942.py").provenance
    assert [name for name, _ in found.uses] == [".../lib/factor.py"]


def test_a_source_that_is_not_found_is_an_error_with_its_place(far, capsys):
    for words in (["check"], ["update", "--no-compile"]):
        assert run(words) == 2
        printed = capsys.readouterr().err
        assert "scale.gfx942.py: it was made from lib/scale.py, which is not found [source-missing]" in printed
        assert "give the folder that has lib/scale.py with --path" in printed


@pytest.mark.parametrize("folder", ["there/x", "there/x/lib"])
def test_path_says_where_sources_are(far, capsys, folder):
    words = ["--path", str(far / folder)]
    assert check(capsys, *words)[0] == 0
    edit(far / "there" / "x" / "lib" / "scale.py", "y = x * FACTOR", "y = x * FACTOR + 1")
    status, printed = check(capsys, *words)
    assert status == 1 and f"{far}/there/x/lib/scale.py changed" in printed
    assert run(["update", "--no-compile", "-q", *words]) == 0
    assert check(capsys, *words)[0] == 0 and "FACTOR + 1" in Path("scale.gfx942.py").read_text()
    edit(far / "there" / "x" / "lib" / "l.json", '"BLOCK": 1024', '"BLOCK": 2048')
    status, printed = check(capsys, *words)
    assert status == 1 and "the launches in" in printed


def test_the_working_folder_and_the_import_path_are_looked_in(far, capsys, monkeypatch):
    output = str(far / "here" / "y" / "out" / "scale.gfx942.py")
    for folder in ("there/x", "there/x/lib"):
        monkeypatch.chdir(far / folder)
        assert check(capsys, output)[0] == 0
    monkeypatch.chdir(far / "here")
    assert check(capsys, output)[0] == 2
    monkeypatch.syspath_prepend(str(far / "there" / "x"))
    assert check(capsys, output)[0] == 0


def test_of_several_files_the_digest_says_which(far, capsys):
    """A nearer file of that name is another one, until the one that was meant is gone."""
    write_source(far / "here" / "lib")
    edit(far / "here" / "lib" / "scale.py", "y = x * FACTOR", "y = x - FACTOR")
    shutil.copytree(far / "there" / "x" / "lib", far / "lib")
    assert check(capsys) == (0, "1 generated file: 1 current\n")
    edit(far / "lib" / "scale.py", "y = x * FACTOR", "y = x / FACTOR")
    status, printed = check(capsys)
    assert status == 1 and f"{far / 'here' / 'lib' / 'scale.py'} changed" in printed


def test_a_file_that_only_shares_its_name_is_not_taken_from_the_working_folder(far):
    """`scale.py` in the working folder is no `lib/scale.py`, unless it is that very text."""
    Path("scale.py").write_text("mine = 1\n")
    digest = file_digest(str(far / "there" / "x" / "lib" / "scale.py"))
    is_it = lambda path: file_digest(path) == digest  # noqa: E731
    assert not is_located(located(".../lib/scale.py", "scale.gfx942.py", (), is_it))
    Path("scale.py").write_text(SOURCE)
    assert located(".../lib/scale.py", "scale.gfx942.py", (), is_it) == "scale.py"


def test_headers_with_the_way_to_another_folder_are_still_read(far, capsys):
    text = Path("scale.gfx942.py").read_text().replace(".../lib/", "../../../there/x/lib/")
    Path("scale.gfx942.py").write_text(text)
    assert check(capsys) == (0, "1 generated file: 1 current\n")


def test_a_project_may_stand_anywhere(tmp_path, monkeypatch, capsys):
    """Sources and outputs in folders of one project: the header is the same wherever that is, and `check` needs no option."""
    monkeypatch.setenv("GLUONIZE_CACHE_DIR", str(tmp_path / ".cache"))
    texts = []
    for place in ("one", "two/deeper"):
        folder = tmp_path / place
        write_source(folder / "src" / "kernels")
        (folder / "rules").mkdir()
        (folder / "rules" / "fast.toml").write_text(RULE)
        (folder / "gluonize.toml").write_text(
            'sources = ["src/kernels/scale.py"]\ntargets = ["gfx942"]\nlaunches = "{folder}/l.json"\n'
            'output = "gen/{name}.py"\noptions = { rules = ["rules"] }\n'
        )
        monkeypatch.chdir(folder)
        assert run(["update", "--no-compile", "-q"]) == 0
        texts.append(Path("gen/scale.py").read_text())
        assert check(capsys)[0] == 0
        (folder / "gluonize.toml").rename(folder / "pyproject.toml")  # without a table: the file speaks for itself
        (folder / "pyproject.toml").write_text("")
        monkeypatch.chdir(folder / "gen")
        assert check(capsys) == (0, "1 generated file: 1 current\n")
        edit(folder / "src" / "kernels" / "scale.py", "y = x * FACTOR", "y = x * FACTOR + 1")
        assert check(capsys)[0] == 1
    assert texts[0] == texts[1] and "source=.../src/kernels/scale.py:" in texts[0]
    assert "rules .../rules" in texts[0]


def test_lines_stay_within_the_line_length():
    """Of options only one that is longer than a line makes a longer line; the line is read back whatever it is."""
    names = tuple(word for n in range(9) for word in ("-k", f"a_kernel_with_a_name_{n}"))
    options = (*names, "--set", "BLOCK=64", "--import", "--choose", "depth=3")
    for width in (60, 79, 88, 120, 2000):
        given = Provenance(
            "a.py", "1" * 12, "l.json", "2" * 12, "gfx950", options=options, triton="3.9.0", output="3" * 12
        )
        lines = given.lines(width)
        assert all(len(line) <= width for line in lines) and (width < 2000 or len(lines) == 1)
        assert parse_provenance("\n".join(lines) + "\n") == given
