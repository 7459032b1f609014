"""Launches with mistakes among others: they are refused, and the others of their file are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from translation_of import TWICE_AND_THRICE

from gluonize.diagnostics import TranslationError
from gluonize.product.cli.edge import run
from gluonize.read.spec.launch import RefusedLaunch, parse_launches
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

GOOD = {
    "id": "good",
    "kernel": "k",
    "source": "k.py",
    "signature": {"x_ptr": "*fp32"},
    "constexprs": {"B": 64},
    "options": {"num_warps": 4},
}
BAD = [
    GOOD | {"id": "options", "options": {"num_warps": 3}},
    GOOD | {"id": "type", "signature": {"x_ptr": "*float"}},
    GOOD | {"id": "field", "grids": [1]},
]
SOURCE = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(x_ptr, B: tl.constexpr):\n    tl.store(x_ptr, B)\n"


def test_all_are_refused_together():
    with pytest.raises(TranslationError) as found:
        parse_launches([GOOD, *BAD])
    assert len(found.value.diagnostics) == len(BAD)


@pytest.mark.parametrize("bad", BAD, ids=[bad["id"] for bad in BAD])
def test_each_is_refused_by_itself(bad: dict, tmp_path: Path):
    refused, good = parse_launches(json.dumps([bad, GOOD]), each=True)
    assert isinstance(refused, RefusedLaunch) and not isinstance(good, RefusedLaunch) and refused.id == bad["id"]
    (tmp_path / "k.py").write_text(SOURCE)
    results = [
        translate_kernel(TranslateRequest(str(tmp_path / "k.py"), "gfx950", launches=(s,))) for s in (refused, good)
    ]
    assert [result.text is None for result in results] == [True, False]
    assert results[0].outcomes[0].diagnostics == refused.problems


NAMELESS = [
    {"id": "nameless", "source": "k.py"},
    {"kernel": 5, "source": "k.py"},
    {"id": 7, "kernel": "k", "source": "k.py", "signature": {}},
    GOOD | {"id": "homeless", "source": 3},
    "text",
    None,
]

# What only the kernel itself tells.
SEEN_LATER = [
    GOOD | {"id": "argument", "signature": {"x_ptr": "*fp32", "y_ptr": "*fp32"}},
    GOOD | {"id": "missing", "signature": {}},
    GOOD | {"id": "kernel", "kernel": "no_such_kernel"},
    GOOD | {"id": "file", "source": "no_such_file.py"},
    GOOD | {"id": "module", "source": "no_such.module"},
]


@pytest.mark.parametrize("bad", NAMELESS, ids=repr)
def test_what_names_no_kernel_is_refused_by_itself_too(bad):
    refused, good = parse_launches(json.dumps([bad, GOOD]), each=True)
    assert isinstance(refused, RefusedLaunch) and refused.id and refused.problems
    assert good.id == "good" and not isinstance(good, RefusedLaunch)
    with pytest.raises(TranslationError):
        parse_launches(json.dumps([bad, GOOD]))


def test_of_launches_with_one_id_the_first_has_it():
    first, second, third = parse_launches([GOOD, GOOD, BAD[0] | {"id": "good"}], each=True)
    assert [x.id for x in (first, second, third)] == ["good", "good#2", "good#3"]
    assert not isinstance(first, RefusedLaunch) and isinstance(second, RefusedLaunch)
    assert "used by several launches" in second.problems[0].message and len(third.problems) == 2


def test_what_is_wrong_with_the_whole_is_raised():
    for data in ("{", "[]", '{"version": 9, "launches": []}', '{"launches": 3}'):
        with pytest.raises(TranslationError):
            parse_launches(data, each=True)


@pytest.mark.parametrize("more", [[], ["--keep-going"]], ids=str)
def test_batch_mode_translates_the_others(tmp_path: Path, monkeypatch, capsys, more):
    """With `--keep-going` or without: every launch has its result, and those that are right their files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GLUONIZE_CACHE_DIR", str(tmp_path / ".cache"))
    (tmp_path / "k.py").write_text(SOURCE)
    bad = [*BAD, *NAMELESS, *SEEN_LATER, GOOD]
    (tmp_path / "l.json").write_text(json.dumps([GOOD, *bad, GOOD | {"id": "last"}]))
    words = ["translate", "-l", "l.json", "-t", "gfx950,gfx942", "--out-dir", "out", "--no-compile", "--json", "r.json"]
    assert run([*words, *more]) == 2
    found = json.loads((tmp_path / "r.json").read_text())["results"]
    assert [(x["status"], x["target"]) for x in found] == [
        (status, target)
        for status in ("translated", *["refused"] * len(bad), "translated")
        for target in ("gfx950", "gfx942")
    ]
    assert all(x["diagnostics"] and x["id"] for x in found[2:-2])
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [f"{name}_{target}.py" for name in ("good", "last") for target in ("gfx942", "gfx950")]
    # What was written is checked without the one that is wrong.
    capsys.readouterr()
    assert run(["check"]) == 0 and "4 current" in capsys.readouterr().out


def test_a_launch_without_a_source_is_refused_by_itself_in_batch_mode(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(SOURCE)
    (tmp_path / "l.json").write_text(
        json.dumps([{k: v for k, v in GOOD.items() if k != "source"}, GOOD | {"id": "last"}])
    )
    assert run(["translate", "-l", "l.json", "-t", "gfx950", "--out-dir", "out", "--no-compile"]) == 2
    assert (tmp_path / "out" / "last_gfx950.py").exists()
    assert "launch good: it names no source [spec-missing]" in capsys.readouterr().err


def test_launches_of_other_sources_are_nobodys_concern(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(SOURCE)
    words = ["translate", "k.py", "-l", "l.json", "-t", "gfx950", "--no-compile", "-o", "k_gfx950.py"]
    (tmp_path / "l.json").write_text(json.dumps([BAD[0] | {"source": "other.py"}, GOOD]))
    assert run(words) == 0
    (tmp_path / "k_gfx950.py").unlink()
    # One of its own: nothing is left out of a file in silence.
    (tmp_path / "l.json").write_text(json.dumps([BAD[0], GOOD]))
    assert run(words) == 2 and not (tmp_path / "k_gfx950.py").exists()
    assert "expected a power of two" in capsys.readouterr().err
    assert run([*words, "--keep-going"]) == 2 and (tmp_path / "k_gfx950.py").exists()
    # Nobody knows whose it is.
    (tmp_path / "l.json").write_text(json.dumps(["text", GOOD]))
    assert run(words) == 2


def test_a_folder_is_translated_but_for_what_is_wrong(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    for name in ("k.py", "other.py"):
        (tmp_path / "src" / name).write_text(SOURCE)
    launches = [GOOD | {"source": "src/k.py"}, BAD[0] | {"source": "src/other.py"}, "text"]
    (tmp_path / "l.json").write_text(json.dumps(launches))
    assert run(["translate", "src/", "-l", "l.json", "-t", "gfx950", "--out-dir", "out", "--no-compile"]) == 2
    assert (tmp_path / "out" / "k_gfx950.py").exists() and not (tmp_path / "out" / "other_gfx950.py").exists()
    printed = capsys.readouterr().err
    assert "expected a power of two" in printed and "a launch is an object" in printed


FUNCTIONS = f"""import triton
import triton.language as tl


{TWICE_AND_THRICE}@triton.jit
def k(x_ptr, ACT: tl.constexpr, B: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, B), ACT(tl.load(x_ptr + tl.arange(0, B))))
"""


def test_launches_that_differ_in_functions_of_one_name_are_not_served_by_one_text(tmp_path: Path):
    """Device code sees the name of a function: the second launch would run the first one's."""
    (tmp_path / "k.py").write_text(FUNCTIONS)
    (tmp_path / "other.py").write_text(FUNCTIONS)
    given = [("k:twice", 64), ("other:twice", 64), ("other:twice", 128), ("k:twice", 64), ("k:thrice", 64)]
    launches = parse_launches(
        [GOOD | {"id": str(i), "constexprs": {"ACT": {"$jit": f}, "B": b}} for i, (f, b) in enumerate(given)]
    )
    request = TranslateRequest(str(tmp_path / "k.py"), "gfx950", launches=tuple(launches), keep_going=True)
    found = translate_kernel(request)
    assert [o.status for o in found.outcomes] == ["translated", "refused", *["translated"] * 3]
    assert [d.code for o in found.outcomes for d in o.diagnostics] == ["launches-alike"]
    assert found.outcomes[1].diagnostics[0].message == "1 gives ACT another function, class or layout than 0 does"
