"""`gluonize check` and `update` as commands, on real translations of a small kernel."""

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import black
import pytest

from gluonize.product.cli.edge import run
from gluonize.product.cli.project import check as check_command
from gluonize.product.project.output.provenance import MARK, parse_provenance, read_generated
from gluonize.product.project.translate import run as translate_run

SOURCE = '''"""Doubles."""
import triton
import triton.language as tl
from factor import FACTOR


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    # The tail is left alone.
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = x * FACTOR
    tl.store(y_ptr + offsets, y, mask=mask)
'''
LAUNCH = {
    "id": "scale",
    "kernel": "scale_kernel",
    "signature": {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"},
    "constexprs": {"BLOCK": 1024},
    "attrs": {"x_ptr": "DS", "y_ptr": "DS", "n": "D"},
    "options": {"num_warps": 4},
}
OUT = "scale_gfx942.py"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with a source, a constant it imports, launches, and the translation for gfx942."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GLUONIZE_CACHE_DIR", str(tmp_path / ".cache"))
    (tmp_path / "scale.py").write_text(SOURCE)
    (tmp_path / "factor.py").write_text("import triton.language as tl\n\nFACTOR = tl.constexpr(2)\n")
    write_launches(tmp_path)
    assert translate("scale.py", "-t", "gfx942", "-l", "l.json") == 0
    return tmp_path


def translate(*arguments):
    return run(["translate", *arguments, "--no-compile", "-q"])


def write_launches(folder, **changes):
    data = {
        "version": 1,
        "launches": [{**LAUNCH, **changes}, {**LAUNCH, "id": "other", "kernel": "other_kernel", "source": "other.py"}],
    }
    (folder / "l.json").write_text(json.dumps(data))


def edit(path, old, new):
    text = Path(path).read_text()
    assert old in text
    Path(path).write_text(text.replace(old, new))


def check(capsys, *arguments):
    """-> exit status, standard output."""
    capsys.readouterr()
    status = run(["check", *arguments])
    return status, capsys.readouterr().out


def translates(monkeypatch):
    """Make a translation an error: what passes then was decided by digests alone."""

    def refuse(*_):
        raise AssertionError("a translation was started")

    monkeypatch.setattr(check_command, "_undecided", refuse)


def test_the_line_says_everything(project):
    file = read_generated(OUT)
    found = file.provenance
    assert (found.source, found.launches, found.target, found.options) == ("scale.py", "l.json", "gfx942", ())
    assert [path for path, _ in found.uses] == ["factor.py"]
    assert not file.edited
    lines = Path(OUT).read_text().splitlines()
    own = [line for line in lines if line.startswith(MARK)]
    assert lines[4 : 4 + len(own)] == own and all(len(line) <= 88 for line in own)
    # The same request gives the same bytes.
    before = Path(OUT).read_bytes()
    assert translate("scale.py", "-t", "gfx942", "-l", "l.json") == 0
    assert Path(OUT).read_bytes() == before


def test_files_of_other_projects_are_not_named(project, tmp_path_factory, monkeypatch):
    """A kernel of an installed package may read dozens of its files: its own version is what pins them."""
    elsewhere = tmp_path_factory.mktemp("installed")
    (elsewhere / "lib").mkdir()
    for name, text in (("__init__", ""), ("factor", Path("factor.py").read_text()), ("scale", SOURCE)):
        (elsewhere / "lib" / f"{name}.py").write_text(text.replace("from factor", "from .factor"))
    monkeypatch.syspath_prepend(str(elsewhere))
    (project / "lib.json").write_text(json.dumps([{**LAUNCH, "source": "lib.scale"}]))
    assert run(["translate", "-l", "lib.json", "-t", "gfx942", "--out-dir", "lib-out", "--no-compile", "-q"]) == 0
    found = read_generated("lib-out/scale_gfx942.py").provenance
    assert found.source == "lib.scale" and found.uses == ()
    assert run(["check", "lib-out/scale_gfx942.py", "-q"]) == 0
    edit(elsewhere / "lib" / "scale.py", "y = x * FACTOR", "y = x * FACTOR + 1")
    assert run(["check", "lib-out/scale_gfx942.py", "-q"]) == 1


def test_current_without_a_translation(project, capsys, monkeypatch):
    translates(monkeypatch)
    assert check(capsys) == (0, "1 generated file: 1 current\n")
    assert check(capsys, OUT)[0] == 0 and check(capsys, "factor.py")[0] == 0
    # Another launch of the same file, and what the launches run on, have no part in it.
    write_launches(project, values={"n": 3})
    assert check(capsys)[0] == 0


@pytest.mark.parametrize(
    "path, old, new, reason, in_diff",
    [
        ("scale.py", "y = x * FACTOR", "y = x * FACTOR + 1", "scale.py changed", "+    y = x * FACTOR + 1"),
        ("l.json", '"BLOCK": 1024', '"BLOCK": 2048', "the launches in l.json changed", "BLOCK=2048"),
    ],
)
def test_a_changed_input_is_named_and_the_difference_shown(project, capsys, path, old, new, reason, in_diff):
    edit(path, old, new)
    status, printed = check(capsys)
    assert status == 1 and f"{OUT}: outdated\n  {reason}" in printed
    assert in_diff in printed and f"--- {OUT}" in printed
    assert run(["update", "--no-compile", "-q"]) == 0
    assert check(capsys)[0] == 0


def test_a_changed_import_matters_when_the_text_depends_on_it(project, capsys):
    (project / "one.json").write_text(json.dumps([{**LAUNCH, "source": "scale.py"}]))
    assert run(["translate", "-l", "one.json", "-t", "gfx942", "--out-dir", "out", "--no-compile", "-q"]) == 0
    edit("factor.py", "constexpr(2)", "constexpr(3)")
    status, printed = check(capsys, OUT, "-v")
    assert status == 0 and "factor.py changed" in printed  # it imports the constant, as its source does
    status, printed = check(capsys, "out/scale_gfx942.py")
    assert status == 1 and "factor.py changed" in printed and "+FACTOR = gl.constexpr(3)" in printed


def test_an_edited_file_fails_unless_edits_are_allowed(project, capsys):
    edit(OUT, "# The tail is left alone.", "# The tail.")
    status, printed = check(capsys)
    assert status == 1 and f"{OUT}: edited" in printed
    assert "-    # The tail.\n+    # The tail is left alone.\n" in printed
    assert check(capsys, "--allow-edits")[0] == 0
    (project / "gluonize.toml").write_text(
        'sources = ["scale.py"]\ntargets = ["gfx942"]\nlaunches = "l.json"\nedits = "allow"\n'
    )
    assert check(capsys)[0] == 0
    edit("scale.py", "y = x * FACTOR", "y = x * FACTOR + 1")
    assert check(capsys, "--allow-edits")[0] == 1


def test_a_damaged_provenance_line_is_not_trusted(project, capsys):
    edit(OUT, f"{MARK}source=", f"{MARK}sauce=")
    assert read_generated(OUT) is None
    (project / "gluonize.toml").write_text('sources = ["scale.py"]\ntargets = ["gfx942"]\nlaunches = "l.json"\n')
    assert check(capsys)[0] == 0  # translated to see that the text is right
    edit(OUT, "# The tail", "# the tail")
    assert check(capsys)[0] == 1


def test_windows_line_ends_change_nothing(project, capsys, monkeypatch):
    translates(monkeypatch)
    for path in (OUT, "scale.py", "factor.py"):
        Path(path).write_bytes(Path(path).read_bytes().replace(b"\n", b"\r\n"))
    assert check(capsys)[0] == 0


def test_missing_outputs_and_gone_sources(project, capsys):
    (project / "gluonize.toml").write_text(
        'sources = ["scale.py"]\ntargets = ["gfx942", "gfx950"]\nlaunches = "l.json"\n'
    )
    status, printed = check(capsys)
    assert status == 1 and "scale_gfx950.py: missing" in printed and "1 current, 1 missing" in printed
    assert check(capsys, "nowhere.py")[0] == 2
    (project / "gluonize.toml").unlink()
    (project / "scale.py").unlink()
    assert check(capsys)[0] == 2


def test_another_version_of_gluonize_is_no_difference_but_other_options_are(project, capsys):
    text = Path(OUT).read_text()
    Path(OUT).write_text(text.replace("Generated by gluonize ", "Generated by gluonize 0.0.1-", 1))
    assert check(capsys)[0] == 0
    Path(OUT).write_text(text)
    (project / "gluonize.toml").write_text(
        'sources = ["scale.py"]\ntargets = ["gfx942"]\nlaunches = "l.json"\nkernels = ["scale_kernel"]\n'
    )
    status, printed = check(capsys, "-v")
    assert status == 0 and "it was made with options none, not -k scale_kernel" in printed  # with the same text


def test_json(project, capsys):
    edit(OUT, "# The tail", "# the tail")
    status, printed = check(capsys, "--json")
    (found,) = json.loads(printed)["files"]
    assert status == 1 and (found["file"], found["state"], found["edited"]) == (OUT, "edited", True)
    assert "-    # the tail" in found["diff"]


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_fifty_unchanged_files_take_less_than_a_second_and_no_triton(project):
    text = Path(OUT).read_text()
    for index in range(50):
        name = f"scale{index}"
        Path(f"{name}.py").write_text(SOURCE)
        provenance = parse_provenance(text)
        assert provenance is not None
        Path(f"{name}_gfx942.py").write_text(text.replace("source=scale.py:", f"source={name}.py:"))
    program = (
        "import sys; from gluonize.product.cli.edge import run; status = run(['check']); "
        "assert 'triton' not in sys.modules and 'libcst' not in sys.modules; sys.exit(status)"
    )
    best = 9.0  # of processor time: it does not depend on what else the machine does
    for _ in range(3):
        started = children_seconds()
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        best = min(best, children_seconds() - started)
    assert done.returncode == 0, done.stderr
    assert "51 generated files: 51 current" in done.stdout
    assert best < 1.0, f"{best:.2f} s"


class TestUpdate:
    def git(self, *arguments):
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)

    def change_both(self):
        edit(OUT, "# The tail is left alone.", "# Only whole blocks.")
        edit(OUT, "y = x * FACTOR", "y = x * FACTOR  # measured")
        edit("scale.py", '"""Doubles."""', '"""Scales."""')
        edit("scale.py", "def scale_kernel(x_ptr, y_ptr, n,", "def scale_kernel(x_ptr, y_ptr, n, shift,")
        write_launches(Path("."), signature={**LAUNCH["signature"], "shift": "i32"})

    def assert_merged(self, capsys, origin):
        capsys.readouterr()
        assert run(["update", OUT, "--no-compile"]) == 0
        printed = capsys.readouterr().out
        assert f"{OUT}: merged" in printed and f"hand edits are what differs from {origin}" in printed
        text = Path(OUT).read_text()
        for part in ("# Only whole blocks.", "# measured", '"""Scales."""', "shift"):
            assert part in text
        assert check(capsys)[0] == 1 and check(capsys, "--allow-edits")[0] == 0
        # There is nothing left to do, and the next merge starts from the new translation.
        assert run(["update", "--no-compile"]) == 0 and Path(OUT).read_text() == text

    def test_from_the_cache(self, project, capsys):
        self.change_both()
        self.assert_merged(capsys, "the cache")

    def test_from_the_history_of_the_output(self, project, capsys, monkeypatch):
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "one")
        monkeypatch.setenv("GLUONIZE_CACHE_DIR", str(project / ".other"))
        self.change_both()
        self.assert_merged(capsys, "commit ")

    def test_from_the_old_source_in_git(self, project, capsys, monkeypatch):
        self.git("init", "-q")
        self.git("add", "scale.py", "factor.py", "l.json")
        self.git("commit", "-qm", "one")
        edit("factor.py", "(2)", "(2 + 0)")
        self.git("commit", "-qam", "two")
        edit("factor.py", "(2 + 0)", "(2)")
        monkeypatch.setenv("GLUONIZE_CACHE_DIR", str(project / ".other"))
        self.change_both()
        self.assert_merged(capsys, "scale.py of commit ")

    def test_without_any_base_it_is_refused(self, project, capsys, monkeypatch):
        monkeypatch.setenv("GLUONIZE_CACHE_DIR", str(project / ".other"))
        self.change_both()
        before = Path(OUT).read_text()
        assert run(["update", OUT, "--no-compile"]) == 2
        assert "[no-base]" in capsys.readouterr().err and Path(OUT).read_text() == before

    def test_conflicts_are_marked_and_reported(self, project, capsys):
        edit(OUT, "y = x * FACTOR", "y = x * 4")
        edit("scale.py", "y = x * FACTOR", "y = x * 8")
        assert run(["update", "--no-compile"]) == 1
        printed = capsys.readouterr().out
        lines = Path(OUT).read_text().splitlines()
        marker = next(i for i, line in enumerate(lines, 1) if line.startswith("<<<<<<< "))
        assert f"{OUT}: conflicts" in printed and f"conflicts to resolve at line {marker}" in printed
        assert lines[marker] == "    y = x * 4" and ">>>>>>> generated from scale.py" in lines
        # Until they are resolved nothing else happens to the file, and no setting lets it through.
        assert check(capsys, "--allow-edits")[0] == 1
        assert run(["update", "--no-compile"]) == 2
        assert "unresolved conflicts" in capsys.readouterr().err and Path(OUT).read_text().splitlines() == lines
        end = lines.index(">>>>>>> generated from scale.py")
        Path(OUT).write_text("\n".join([*lines[: marker - 1], "    y = x * 32", *lines[end + 1 :]]) + "\n")
        assert check(capsys, "--allow-edits")[0] == 0

    def test_a_merge_that_does_not_compile_leaves_the_file_alone(self, project, capsys):
        edit(OUT, "    y = x * FACTOR\n", "    y = x * FACTOR + not_there\n")
        edit("scale.py", '"""Doubles."""', '"""Scales."""')
        before = Path(OUT).read_text()
        assert run(["update"]) == 1
        assert "not_there" in capsys.readouterr().err
        assert Path(OUT).read_text() == before
        assert "not_there" in Path("scale_gfx942.rejected.py").read_text()
        assert "1 generated file:" in check(capsys)[1]  # what was rejected is not one of them

    def test_a_merge_that_computes_something_else_leaves_the_file_alone(self, project, capsys):
        edit(OUT, "    y = x * FACTOR\n", "    y = x * FACTOR + 1\n")
        edit("scale.py", '"""Doubles."""', '"""Scales."""')
        before = Path(OUT).read_text()
        assert run(["update"]) == 1
        printed = capsys.readouterr().err
        assert "[mismatch]" in printed and Path(OUT).read_text() == before
        assert "its hand edits are part of it" in printed and "bug in gluonize" not in printed
        kept = Path("scale_gfx942.rejected.py").read_text()
        assert kept.startswith("# Rejected by gluonize") and "x * FACTOR + 1" in kept
        assert "1 generated file:" in check(capsys)[1]

    def test_a_new_text_that_computes_something_else_leaves_the_file_alone(self, project, capsys, monkeypatch):
        monkeypatch.setattr(translate_run, "VALIDATE", "cli_stand_in:validate_mismatch")
        edit("scale.py", "y = x * FACTOR", "y = x * 3")
        before = Path(OUT).read_text()
        assert run(["update"]) == 1
        assert Path(OUT).read_text() == before and "x * 3" in Path("scale_gfx942.rejected.py").read_text()
        assert check(capsys)[0] == 1  # it is still outdated

    def test_a_renamed_variable_is_used_in_new_lines_and_validated(self, project, capsys):
        for old, new in (("offsets", "places"),):
            edit(OUT, old, new)
        edit("scale.py", "    y = x * FACTOR\n", "    y = x * FACTOR\n    y = tl.where(offsets > 3, y, x)\n")
        write_launches(project, values=values(), grid=[2])
        assert run(["update"]) == 0
        assert "✓ scale_kernel  proved" in capsys.readouterr().out
        text = Path(OUT).read_text()
        assert "gl.where(places > 3, y, x)" in text and "offsets >" not in text

    def test_translate_without_arguments_does_what_the_configuration_says(self, project, capsys):
        (project / "gluonize.toml").write_text(
            'sources = ["scale.py"]\ntargets = ["gfx942", "gfx1100"]\nlaunches = "l.json"\n'
        )
        assert run(["translate", "--no-compile"]) == 0
        assert capsys.readouterr().out == "scale_gfx1100.py: written\n2 generated files: 1 current, 1 written\n"
        edit(OUT, "# The tail", "# the tail")
        edit("scale.py", "y = x * FACTOR", "y = x * FACTOR + 1")
        edited = Path(OUT).read_text()
        assert run(["translate", "--no-compile"]) == 2
        assert "[edited]" in capsys.readouterr().err and Path(OUT).read_text() == edited
        assert "+ 1" in Path("scale_gfx1100.py").read_text()

    def test_a_file_of_unknown_origin_is_left_alone(self, project, capsys):
        (project / "gluonize.toml").write_text('sources = ["scale.py"]\ntargets = ["gfx950"]\nlaunches = "l.json"\n')
        Path("scale_gfx950.py").write_text("mine = 1\n")
        assert run(["update", "--no-compile"]) == 2
        assert "[no-provenance]" in capsys.readouterr().err and Path("scale_gfx950.py").read_text() == "mine = 1\n"


def test_a_name_with_a_space_is_found(project, capsys):
    subprocess.run(["git", "init", "-q"], check=True)
    Path("my scale.py").write_text(Path("scale.py").read_text())
    assert translate("my scale.py", "-t", "gfx942", "-l", "l.json") == 0
    assert check(capsys) == (0, "2 generated files: 2 current\n")


def values():
    tensor = {"tensor": {"dtype": "float32", "shape": [2000], "stride": [1], "storage": 2000, "offset": 0}}
    return {"x_ptr": tensor, "y_ptr": tensor, "n": 2000}


def test_a_file_that_was_edited_is_replaced_by_force_and_kept(project, capsys):
    words = ["translate", "scale.py", "-t", "gfx942", "-l", "l.json", "--no-compile"]
    for kept in (f"{OUT}.edited", f"{OUT}.edited2"):
        edit(OUT, "# The tail", "# the tail")
        edited = Path(OUT).read_text()
        assert run(words) == 2
        assert "[edited]" in (printed := capsys.readouterr().err) and f"gluonize update {OUT}" in printed
        assert Path(OUT).read_text() == edited and not Path(kept).exists()
        assert run([*words, "--force"]) == 0
        assert "was edited by hand" in capsys.readouterr().out
        assert Path(kept).read_text() == edited and Path(OUT).read_text() != edited
    assert check(capsys) == (0, "1 generated file: 1 current\n")
    Path(f"{OUT}.edited").unlink()
    assert run([*words, "-q"]) == 0
    assert not Path(f"{OUT}.edited").exists()


@pytest.mark.parametrize("name", ["notes.py", "scale_gfx942.py"])
def test_a_file_that_is_not_ours_is_left_alone(project, capsys, name):
    words = ["translate", "scale.py", "-t", "gfx942", "-l", "l.json", "--no-compile", "-q"]
    words += ["-o", name] if name != OUT else []
    Path(name).write_text("mine = 1\n")
    assert run(words) == 2 and Path(name).read_text() == "mine = 1\n"
    assert "did not write it" in (printed := capsys.readouterr().err) and "--force" in printed
    assert run([*words, "--force"]) == 0 and "gluon.jit" in Path(name).read_text()
    assert run(words) == 0  # its own file, as it left it


def test_a_translation_of_another_source_is_left_alone(project, capsys):
    (project / "other").mkdir()
    for name in ("scale.py", "factor.py"):
        (project / "other" / name).write_text(Path(name).read_text())
    before = Path(OUT).read_bytes()
    words = ["translate", "other/scale.py", "-t", "gfx942", "-l", "l.json", "--no-compile", "--out-dir", ".", "-q"]
    assert run(words) == 2 and Path(OUT).read_bytes() == before
    assert "it is the translation of scale.py" in capsys.readouterr().err
    assert run([*words, "--force"]) == 0 and Path(OUT).read_bytes() != before


def test_batch_mode_leaves_files_alone_too(project, capsys):
    (project / "one.json").write_text(json.dumps([{**LAUNCH, "source": "scale.py"}]))
    (project / "out").mkdir()
    Path("out/scale_gfx942.py").write_text("mine = 1\n")
    words = ["translate", "-l", "one.json", "-t", "gfx942", "--out-dir", "out", "--no-compile", "-q"]
    assert run(words) == 2 and Path("out/scale_gfx942.py").read_text() == "mine = 1\n"
    assert run([*words, "--force"]) == 0 and run(words) == 0


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "words",
    [
        ["diff", "scale.py", OUT, "--format", "unified", "-o", "scale.py"],
        ["diff", "scale.py", OUT, "--format", "html", "-o", "notes.html"],
        ["diff", "scale.py", OUT, "--format", "unified", "-o", "notes.py"],
        ["report", "scale.py", OUT, "-t", "gfx942", "-l", "l.json", "-o", "l.json"],
        ["report", "scale.py", OUT, "-t", "gfx942", "-l", "l.json", "-o", "notes.html"],
        ["compile", "scale.py", "-t", "gfx942", "-l", "l.json", "--json", "l.json"],
        ["check", "--json", "notes.json"],
    ],
    ids=" ".join,
)
def test_no_command_replaces_what_it_did_not_write(project, capsys, words):
    for name in ("notes.html", "notes.py", "notes.json"):
        Path(name).write_text("[1]\n")
    before = {path: path.read_bytes() for path in project.iterdir() if path.is_file()}
    assert run(words) == 2 and "[output-exists]" in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in project.iterdir() if path.is_file()}


def test_what_a_command_wrote_itself_it_replaces(project):
    for words in (["diff", "scale.py", OUT, "--format", "html", "-o", "d.html"], ["check", "--json", "c.json"]):
        assert run(words) == 0 and run(words) == 0


def test_a_formatter_is_no_hand(project, capsys, monkeypatch):
    translates(monkeypatch)
    written = Path(OUT).read_text()
    for length in (60, 79, 88, 120, 200):
        text = black.format_str(written, mode=black.Mode(line_length=length))
        # As `ruff format` with quote-style = "single" writes it.
        for text in (text, re.sub(r'(?<!")"([^"\'\n]*)"(?!")', r"'\1'", text) + "\n\n"):
            Path(OUT).write_text(text)
            assert check(capsys) == (0, "1 generated file: 1 current\n")
            assert run(["update"]) == 0 and capsys.readouterr().out == "1 generated file: 1 current\n"
    edit(OUT, "offsets < n", "offsets <= n")
    assert read_generated(OUT).edited


def test_update_says_that_there_is_nothing_to_merge(project, capsys):
    edit(OUT, "# The tail", "# the tail")
    assert run(["update"]) == 0
    printed = capsys.readouterr().out
    assert "current" in printed and "nothing to merge" in printed


def test_an_edited_file_does_not_stay_validated(project, capsys):
    write_launches(project, values=values(), grid=[2])
    assert run(["translate", "scale.py", "-t", "gfx942", "-l", "l.json", "--force", "-q"]) == 0
    edit(OUT, "# The tail", "# the tail")
    assert run(["update"]) == 0 and "# Proved: every" in Path(OUT).read_text()
    assert "validated" not in capsys.readouterr().out
    edit(OUT, ".size() >= 2**31", ".size() < 0")  # then offsets of 32 bits may not reach
    edited = Path(OUT).read_text()
    assert run(["update"]) == 0
    assert "not validated: " in capsys.readouterr().out
    text = Path(OUT).read_text()
    assert "# Proved" not in text and "# Validated" not in text and "# Not validated: " in text
    assert text.partition("\n# scale_kernel: ")[2] == edited.partition("\n# scale_kernel: ")[2] != ""
    assert run(["update"]) == 0 and Path(OUT).read_text() == text


def test_edits_of_a_formatted_file_are_merged(project, capsys):
    Path("pyproject.toml").write_text("[tool.black]\nline-length = 70\n")
    text = black.format_str(Path(OUT).read_text(), mode=black.Mode(line_length=200, magic_trailing_comma=False))
    Path(OUT).write_text(text)
    edit(OUT, "# The tail", "# the tail")
    edit("scale.py", "y = x * FACTOR", "y = x * FACTOR + 1")
    assert run(["update", "--no-compile"]) == 0, capsys.readouterr().out
    text = Path(OUT).read_text()
    assert "# the tail" in text and "+ 1" in text


def test_batch_outputs_name_their_launch(project, capsys):
    write_launches(project, source="scale.py")
    (project / "one.json").write_text(json.dumps([{**LAUNCH, "source": "scale.py"}]))
    assert run(["translate", "-l", "one.json", "-t", "gfx942", "--out-dir", "out", "--no-compile", "-q"]) == 0
    found = read_generated("out/scale_gfx942.py").provenance
    assert (found.source, found.launches, found.launch) == (".../scale.py", ".../one.json", "scale")
    assert check(capsys, "out/scale_gfx942.py") == (0, "1 generated file: 1 current\n")
    edit("scale.py", "y = x * FACTOR", "y = x * FACTOR + 1")
    status, printed = check(capsys, "out/scale_gfx942.py")
    assert status == 1 and "outdated" in printed
    assert run(["update", "out/scale_gfx942.py", "--no-compile", "-q"]) == 0
    assert check(capsys, "out/scale_gfx942.py")[0] == 0
    assert os.path.exists("out/scale_gfx942.py")


@pytest.mark.parametrize("command", ["check", "update"])
def test_nothing_to_do_is_no_success(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.py").write_text("x = 1\n")
    assert run([command, "-q"]) == 2
    assert "no generated files here [nothing-to-check]" in capsys.readouterr().err
    assert run([command, "plain.py", "-q"]) == 2
    assert "plain.py: no generated file is made from it" in capsys.readouterr().err


def test_launches_that_may_have_been_edited_are_kept(project, capsys):
    words = ["translate", "scale.py", "-t", "gfx942", "--no-compile", "-q", "--out-dir", "out", "--set", "BLOCK=64"]
    Path("mine.json").write_text("[]")
    assert run([*words, "--write-launches", "mine.json"]) == 2 and Path("mine.json").read_text() == "[]"
    assert "[output-exists]" in capsys.readouterr().err
    assert run([*words, "--write-launches", "mine.json", "--force"]) == 0 and Path("mine.json").read_text() != "[]"


def test_differences_are_short_and_all_of_them_with_v(project, capsys):
    edit("scale.py", '"""Doubles."""', "\n".join(f"# line {n}" for n in range(40)))
    _, printed = check(capsys)
    assert len(printed.splitlines()) <= 25 and "more lines of differences: -v" in printed
    assert printed.startswith("1 generated file: 1 outdated\n")
    _, everything = check(capsys, "-v")
    assert "+# line 39" in everything and "of differences: -v" not in everything


def test_conflicts_have_no_difference_to_show(project, capsys):
    Path(OUT).write_text(Path(OUT).read_text() + "<<<<<<< yours\na = 1\n=======\na = 2\n>>>>>>> theirs\n")
    status, printed = check(capsys)
    assert status == 1 and "it has 1 unresolved conflict\n" in printed and "of differences" not in printed
    assert "resolve the conflicts, and take their marks out\n" in printed
    assert printed.endswith("git checkout --ours FILE, or --theirs, whichever has your edits; gluonize update\n")
