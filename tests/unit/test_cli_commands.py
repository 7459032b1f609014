"""Whole command lines: exit statuses, messages, files, JSON."""

import importlib.resources
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from gluonize.product.cli.edge import run
from gluonize.product.project.translate import run as translate_run

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SOURCE = """
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x * 3, mask=offsets < n)
"""


def launch(name="scale", kernel="scale_kernel", **changes):
    base = {
        "id": name,
        "kernel": kernel,
        "signature": {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 1024},
        "attrs": {"x_ptr": "DS", "y_ptr": "DS", "n": "D"},
        "options": {"num_warps": 4},
    }
    return {**base, **changes}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a source, its launches, and the stand-in for the translation stage."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(translate_run, "TRANSLATE", "cli_stand_in:translate_kernel")
    monkeypatch.setattr(translate_run, "VALIDATE", "cli_stand_in:no_such_function")
    translate_run.is_available.cache_clear()
    (tmp_path / "scale.py").write_text(SOURCE)
    (tmp_path / "l.json").write_text(json.dumps([launch()]))
    return tmp_path


def write_launches(folder, *launches):
    (folder / "l.json").write_text(json.dumps({"version": 1, "launches": list(launches)}))


SCHEMA = json.loads(importlib.resources.files("gluonize.product.cli").joinpath("results.schema.json").read_text())


def results(folder):
    """The results that a command wrote, checked against the published schema."""
    data = json.loads((folder / "r.json").read_text())
    jsonschema.validate(data, SCHEMA)
    return data["results"]


def quick(*words):
    """Run without compiling."""
    return run([*words, "--no-compile"])


@pytest.mark.parametrize(
    "wrong",
    [
        dict(status="ok"),
        dict(diagnostics=[{"code": "x"}]),
        dict(parity={"ratios": {}}),
        dict(validation={}),
        dict(output=3),
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_the_schema_refuses_what_it_does_not_describe(wrong):
    good = {"id": "a", "kernel": "k", "target": "gfx950", "status": "translated", "diagnostics": []}
    jsonschema.validate({"version": 1, "results": [good]}, SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"version": 1, "results": [good | wrong]}, SCHEMA)


# --- bad input: one message, status 2, nothing written


@pytest.mark.parametrize(
    "words, message",
    [
        ("translate scale.py -t gfx90a -l l.json", "unknown target 'gfx90a'"),
        ("translate missing.py -t gfx950 -l l.json", "missing.py: no such file [source-missing]"),
        ("translate broken.py -t gfx950 -l l.json", "broken.py:2:7: syntax error"),
        ("translate binary.py -t gfx950 -l l.json", "not Python source"),
        ("translate scale.py -t gfx950 -l missing.json", "cannot read the launch specs"),
        ("translate scale.py -t gfx950 -l broken.json", "broken.json:2:1: not JSON"),
        ("translate scale.py -t gfx950 -l l.json -k other_kernel", "no launch for other_kernel"),
        ("translate scale.py -t gfx950", "BLOCK has no value"),
        ("translate -t gfx950", "no SOURCE given"),
        ("translate -t gfx950 -l l.json", "batch mode needs a folder"),
        ("translate -t gfx950 -l l.json --out-dir out", "launches without a source"),
        ("translate scale.py -t gfx950,gfx942 -l l.json -o x.py", "-o names one file, but there are 2 targets"),
        ("translate scale.py -t gfx950 -l l.json -o scale.py", "the output scale.py is the source itself"),
        ("translate scale.py -t gfx950 -l l.json -o x.py --out-dir out", "both -o and --out-dir"),
        ("translate scale.py -t gfx950 -l l.json --out-dir scale.py/x", "cannot create the output folder"),
        ("translate scale.py -t gfx950 -l l.json --set BLOCK", "expected NAME=VALUE"),
        ("translate scale.py -t gfx950 -l l.json --optimize most", "no such level"),
        ("translate scale.py -t gfx950 -l l.json --no-such-option", "--no-such-option"),
        ("translate scale.py", "-t"),
        ("translate scale.py -t gfx950 -l l.json --json no/r.json", "no/r.json: cannot write the output"),
        ("compile scale.py -t gfx950 -l l.json --json no/r.json", "no/r.json: cannot write the output"),
        ("parity scale.py scale.py -t gfx950 -l l.json --json no/r.json", "no/r.json: cannot write the output"),
        ("translate scale.py -t gfx950 -l l.json -o no/such/../x.py --out-dir=", "both -o and --out-dir"),
        ("compile scale.py -t gfx950 -l l.json --json x.json -k nothing", "no launch for nothing"),
        ("parity scale.py missing.py -t gfx950 -l l.json", "missing.py: no such file"),
        ("--color blue targets", "auto, always or never"),
        ("frobnicate", "frobnicate"),
    ],
)
def test_bad_input_is_refused_with_one_message(folder, capfd, words, message):
    (folder / "broken.py").write_text("x = 1\ndef f(:\n")
    (folder / "binary.py").write_bytes(b"\x7fELF\x00\x00")
    (folder / "broken.json").write_text('{"kernel":\n}')
    before = sorted(os.listdir(folder))
    assert run(words.split()) == 2
    captured = capfd.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert sorted(set(os.listdir(folder)) - {"cache", "out"}) == before


# --- translate


@pytest.mark.parametrize("targets", [("-t", "gfx950,gfx942"), ("-t", "gfx950", "-t", "gfx942")], ids=" ".join)
def test_one_output_per_target_beside_the_source(folder, capfd, targets):
    assert quick("translate", "scale.py", *targets, "-l", "l.json", "--json", "r.json") == 0
    assert (folder / "scale_gfx950.py").exists() and (folder / "scale_gfx942.py").exists()
    found = results(folder)
    assert [(r["id"], r["target"], r["status"], r["output"]) for r in found] == [
        ("scale", "gfx950", "translated", "scale_gfx950.py"),
        ("scale", "gfx942", "translated", "scale_gfx942.py"),
    ]
    assert found[0]["seconds"] == 0.25 and found[0]["validation"] == {"status": "skipped"}
    assert (found[0]["choices"], found[0]["assumptions"]) == (["x: one row of four"], ["n * 4 < 2**31"])
    lines = capfd.readouterr().out.splitlines()
    assert lines[1] == lines[3] == "✓ scale_kernel  translated  1 launch"


def test_json_alone_on_standard_output(folder, capfd):
    assert quick("translate", "scale.py", "-t", "gfx950", "-l", "l.json", "--json") == 0
    captured = capfd.readouterr()
    assert json.loads(captured.out)["results"][0]["status"] == "translated"
    assert "scale.py" in captured.err


def test_quiet_prints_nothing(folder, capfd):
    assert quick("translate", "scale.py", "-t", "gfx950", "-l", "l.json", "-q") == 0
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_a_refusal_names_its_place_and_leaves_no_file(folder, capfd):
    write_launches(folder, launch(), launch("no", "refused_kernel"))
    assert quick("translate", "scale.py", "-t", "gfx950", "-l", "l.json", "--json", "r.json") == 2
    assert not (folder / "scale_gfx950.py").exists()
    err = capfd.readouterr().err
    assert "scale.py:9:5: no bound [offset-range]" in err and "x = tl.load" in err and "why: w" in err
    assert [(r["id"], r["status"]) for r in results(folder)] == [("scale", "refused"), ("no", "refused")]


def test_keep_going_writes_the_other_kernels_and_still_says_so(folder):
    write_launches(folder, launch(), launch("no", "refused_kernel"))
    assert quick("translate", "scale.py", "-t", "gfx950", "-l", "l.json", "--keep-going", "--json", "r.json") == 2
    assert (folder / "scale_gfx950.py").exists()
    assert [(r["id"], r["status"]) for r in results(folder)] == [("scale", "translated"), ("no", "refused")]


def test_without_keep_going_the_first_refusal_ends_the_run(folder):
    write_launches(folder, launch("no", "refusing_kernel", source="scale.py"), launch(source="scale.py"))
    words = ["translate", "-l", "l.json", "-t", "gfx950", "--out-dir", "out", "--json", "r.json", "-j", "2"]
    assert quick(*words) == 2
    assert [(r["id"], r["status"]) for r in results(folder)] == [("no", "refused")]
    assert os.listdir(folder / "out") == []


def test_without_keep_going_nobody_waits_for_the_rest(folder):
    write_launches(
        folder, launch("no", "refusing_kernel", source="scale.py"), launch("s", "slow_kernel", source="scale.py")
    )
    started = time.monotonic()
    assert quick("translate", "-l", "l.json", "-t", "gfx950", "--out-dir", "out", "-j", "2") == 2
    assert time.monotonic() - started < 20


def test_batch_mode_has_a_file_and_a_result_per_launch_and_target(folder, capfd):
    write_launches(
        folder,
        launch("pkg/a", source="scale.py"),
        launch("pkg/b", "abort_kernel", source="scale.py"),
        launch("pkg/c", "refusing_kernel", source="scale.py"),
        launch("pkg.a", source="scale.py"),
    )
    words = ["translate", "-l", "l.json", "-t", "gfx950,gfx942", "--out-dir", "out", "--json", "r.json", "--keep-going"]
    assert quick(*words, "-j", "2") == 2
    found = results(folder)
    assert [(r["id"], r["target"]) for r in found] == [
        (name, target) for name in ("pkg/a", "pkg/b", "pkg/c", "pkg.a") for target in ("gfx950", "gfx942")
    ]
    by_id = {(r["id"], r["target"]): r for r in found}
    assert [by_id[name, "gfx942"]["status"] for name in ("pkg/a", "pkg/b", "pkg/c", "pkg.a")] == [
        *("translated", "failed", "refused", "translated")
    ]
    assert by_id["pkg/b", "gfx942"]["diagnostics"][0]["code"] == "compiler-abort"
    assert by_id["pkg/b", "gfx942"]["diagnostics"][0]["why"] == "LLVM ERROR: Cannot select: wmma"
    outputs = {r["output"] for r in found if r["output"]}
    assert len(outputs) == 4 and all(os.path.isfile(path) for path in outputs)
    assert "4 translated, 2 refused, 2 failed" in capfd.readouterr().out


def test_a_bug_has_status_3_and_what_to_report(folder, capfd):
    write_launches(folder, launch("b", "buggy_kernel"))
    assert quick("translate", "scale.py", "-t", "gfx950", "-l", "l.json", "--json", "r.json") == 3
    assert results(folder)[0]["diagnostics"][0]["code"] == "internal-error"
    assert "KeyError: 'a bug'" in capfd.readouterr().err


def test_a_bug_outside_the_children_has_status_3(folder, capfd, monkeypatch):
    monkeypatch.setattr(translate_run, "FileReport", lambda *_, **__: 1 / 0)
    assert quick("translate", "scale.py", "-t", "gfx950", "-l", "l.json") == 3
    err = capfd.readouterr().err
    assert "this is a bug in gluonize" in err and "ZeroDivisionError" in err and "gluonize 0." in err


@pytest.mark.slow
def test_a_time_limit_is_a_failure(folder, capfd):
    write_launches(folder, launch("s", "slow_kernel"))
    assert quick("translate", "scale.py", "-t", "gfx950", "-l", "l.json", "--timeout", "1") == 1
    assert "took more than 1 s" in capfd.readouterr().err


def test_a_full_disk_is_reported(folder, capfd):
    assert quick("translate", "scale.py", "-t", "gfx950", "-l", "l.json", "-o", "/dev/full") == 2
    assert "the disk is full" in capfd.readouterr().err


def test_an_output_that_cannot_be_written_is_refused(folder, capfd):
    (folder / "out").mkdir()
    (folder / "out" / "scale_gfx950.py").mkdir()
    assert quick("translate", "scale.py", "-t", "gfx950", "-l", "l.json", "--out-dir", "out") == 2
    assert "it is a folder" in capfd.readouterr().err


@pytest.mark.compile
def test_the_output_is_compiled_and_compared(folder, capfd):
    assert run(["translate", "scale.py", "-t", "gfx950", "-l", "l.json", "--json", "r.json"]) == 0
    (found,) = results(folder)
    assert found["metrics"]["store"] == found["triton"]["store"] == 1
    assert found["parity"]["ratios"]["mma"] == 1.0 and found["parity"]["widths"]["load"] == [128, 128]
    assert "✓ scale_kernel  translated  1.00x instructions of Triton  1 launch\n" in capfd.readouterr().out


@pytest.mark.compile
def test_a_translation_that_does_not_compile_is_no_result(folder, capfd):
    # The stand-in's layout has 64 lanes, gfx1100 has 32: Triton compiles the source there, so the fault is ours.
    assert run(["translate", "scale.py", "-t", "gfx1100", "-l", "l.json", "--json", "r.json"]) == 1
    assert not (folder / "scale_gfx1100.py").exists() and (folder / "scale_gfx1100.rejected.py").exists()
    (found,) = results(folder)
    assert (found["status"], found["output"]) == ("failed", None)
    assert found["diagnostics"][0]["code"] == "compiler-error"
    assert found["diagnostics"][0]["file"] == "scale_gfx1100.rejected.py"
    captured = capfd.readouterr()
    assert "the text that did not compile is in scale_gfx1100.rejected.py" in captured.out
    assert "offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, row)" in captured.err


@pytest.mark.compile
def test_what_triton_cannot_compile_either_is_a_refusal(folder, monkeypatch):
    (folder / "scale.py").write_text(SOURCE.replace("x * 3", "x * tl.arange(0, 2)"))
    assert run(["translate", "scale.py", "-t", "gfx1100", "-l", "l.json", "--json", "r.json"]) == 2
    assert not (folder / "scale_gfx1100.py").exists() and not (folder / "scale_gfx1100.rejected.py").exists()
    (found,) = results(folder)
    assert (found["status"], found["output"]) == ("refused", None)
    assert "Triton's own compile of the source fails too" in found["diagnostics"][0]["why"]


@pytest.mark.compile
def test_what_computes_something_else_is_no_result(folder, monkeypatch, capfd):
    monkeypatch.setattr(translate_run, "VALIDATE", "cli_stand_in:validate_mismatch")
    (folder / "scale_gfx950.py").write_text("# the good file of an earlier run\n")
    words = ["translate", "scale.py", "-t", "gfx950", "-l", "l.json", "--json", "r.json", "--no-parity", "--force"]
    assert run(words) == 1
    (found,) = results(folder)
    assert (found["status"], found["output"], found["triton"]) == ("mismatch", None, None)
    assert found["validation"]["status"] == "mismatch"
    assert (folder / "scale_gfx950.py").read_text() == "# the good file of an earlier run\n"
    lines = (folder / "scale_gfx950.rejected.py").read_text().splitlines()
    assert lines[0].startswith("# Rejected by gluonize") and lines[1].startswith(
        "# scale: y_ptr: 3 of 8 elements differ"
    )
    # Every place is one of the file that was written.
    line = next(number for number, text in enumerate(lines, 1) if "buffer_store" in text)
    place = f"scale_gfx950.rejected.py:{line}:5"
    assert place in found["validation"]["reason"] and found["validation"]["line"] == line
    (diagnostic,) = found["diagnostics"]
    assert (diagnostic["code"], diagnostic["file"], diagnostic["line"]) == (
        "mismatch",
        "scale_gfx950.rejected.py",
        line,
    )
    captured = capfd.readouterr()
    assert place in captured.err and "the text that is wrong is in scale_gfx950.rejected.py" in captured.out
    assert run([*words, "--no-validate"]) == 0


@pytest.mark.compile
def test_in_batch_mode_a_mismatch_has_no_output_either(folder, monkeypatch, capfd):
    monkeypatch.setattr(translate_run, "VALIDATE", "cli_stand_in:validate_mismatch")
    write_launches(folder, launch("one", source="scale.py"), launch("two", source="scale.py"))
    words = ["translate", "-l", "l.json", "-t", "gfx950", "--out-dir", "out", "--json", "r.json", "--no-parity"]
    assert run([*words, "--keep-going"]) == 1
    assert [(found["id"], found["status"], found["output"]) for found in results(folder)] == [
        ("one", "mismatch", None),
        ("two", "mismatch", None),
    ]
    assert sorted(os.listdir(folder / "out")) == ["one_gfx950.rejected.py", "two_gfx950.rejected.py"]
    assert "0 translated, 0 refused, 0 failed, 2 mismatch" in capfd.readouterr().out


def test_ctrl_c_leaves_nothing_behind(folder, tmp_path_factory):
    write_launches(folder, launch("s", "slow_kernel"))
    program = (
        "import sys\nfrom gluonize.product.project.translate import run as translate_run\nfrom gluonize.product.cli.edge import run\n"
        "translate_run.TRANSLATE = 'cli_stand_in:translate_kernel'\nsys.exit(run(sys.argv[1:]))\n"
    )
    before = sorted(os.listdir(folder))
    started = tmp_path_factory.mktemp("started") / "marker"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "translate", "scale.py", "-t", "gfx950", "-l", "l.json", "--json", "r.json"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path]),
            "SLOW_KERNEL_STARTED": str(started),
        },
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not started.exists() and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 130 and err.strip() == "interrupted"
    assert sorted(set(os.listdir(folder)) - {"cache"}) == before


# --- the other commands


@pytest.mark.compile
def test_compile_emits_every_stage(folder, capfd):
    assert run(["compile", "scale.py", "-t", "gfx1100", "-l", "l.json", "--emit", "ir", "--json", "r.json"]) == 0
    (found,) = results(folder)
    assert {"ttgir", "llir", "amdgcn", "hsaco"} <= set(found["files"])
    assert all(os.path.getsize(path) for path in found["files"].values())
    assert found["metrics"]["load"] == 2 and "occupancy" in capfd.readouterr().out


@pytest.mark.compile
def test_modules_name_the_file_that_was_compiled(folder):
    """Triton compiles equal texts once, wherever they lie."""
    (folder / "copy").mkdir()
    for place in (folder, folder / "copy"):
        shutil.copyfile(folder / "scale.py", place / "scale_there.py")
        words = [
            "compile",
            str(place / "scale_there.py"),
            "-t",
            "gfx1100",
            "-l",
            "l.json",
            "--emit",
            str(place / "ir"),
            "-q",
        ]
        assert run(words) == 0
        (module,) = (place / "ir").glob("*.ttgir")
        assert f'loc("{place}/scale_there.py":' in module.read_text()


@pytest.mark.compile
def test_parity_of_a_source_with_itself(folder):
    words = ["parity", "scale.py", "scale.py", "-t", "gfx950", "-l", "l.json", "--check", "--json", "r.json"]
    assert run(words) == 0
    assert set(results(folder)[0]["parity"]["ratios"].values()) == {1.0}


@pytest.mark.compile
def test_parity_check_fails_on_a_regression(folder):
    slow = SOURCE.replace("x * 3", "tl.exp(tl.sin(x)) + tl.cos(x) * tl.log(x)")
    (folder / "slow.py").write_text(slow)
    words = ["parity", "scale.py", "slow.py", "-t", "gfx950", "-l", "l.json", "--json", "r.json"]
    assert run([*words, "--check"]) == 1 and run(words) == 0
    assert "instructions" in results(folder)[0]["parity"]["regressions"][0]


@pytest.mark.compile
@pytest.mark.parametrize(
    "planted, found",
    [
        ("", ()),
        ("        gl.barrier()\n", ("hottest loop has 2 barriers per tile, Triton's 1",)),
        (
            "        acc = cdna4.mfma(a, b, acc)\n",
            ("hottest loop has 32 matrix instructions per tile, Triton's 16",),
        ),
    ],
    ids=["as translated", "a barrier more", "a product more"],
)
def test_parity_check_fails_on_what_is_planted_in_a_loop(folder, planted, found):
    matmul = FIXTURES / "matmul"
    text, product = (matmul / "golden" / "gfx950.py").read_text(), "        acc = cdna4.mfma(a, b, acc)\n"
    assert text.count(product) == 1
    (folder / "out.py").write_text(text.replace(product, product + planted))
    launches = json.loads((matmul / "launches.json").read_text())["launches"]
    (folder / "l.json").write_text(json.dumps(launches[:1]))
    words = ["parity", str(matmul / "kernel.py"), "out.py", "-t", "gfx950", "-l", "l.json", "--json", "r.json"]
    assert run([*words, "--check"]) == bool(found)
    assert tuple(results(folder)[0]["parity"]["regressions"]) == found


@pytest.mark.compile
def test_a_kernel_that_does_not_compile_fails_the_command(folder, capfd):
    (folder / "scale.py").write_text(SOURCE.replace("x * 3", "x * tl.arange(0, 2)"))
    assert run(["compile", "scale.py", "-t", "gfx950", "-l", "l.json", "--json", "r.json"]) == 1
    assert results(folder)[0]["status"] == "failed"
    assert "scale.py:10:" in capfd.readouterr().err


def test_targets_lists_every_target(capfd):
    assert run(["targets"]) == 0
    out = capfd.readouterr().out
    names = ("gfx942", "gfx950", "gfx1250", "gfx1100", "gfx1201")
    assert all(name in out for name in (*names, "-v")) and out.count("\n") <= 25
    assert run(["-v", "targets"]) == 0
    out = capfd.readouterr().out
    assert all(name in out for name in (*names, "mfma 32x32x16", "wmma", " from "))
    assert run(["targets", "--json"]) == 0
    assert len(json.loads(capfd.readouterr().out)["results"]) == 6


def test_version(capfd):
    assert run(["--version"]) == 0
    assert capfd.readouterr().out.startswith("gluonize 0.")


def test_help_imports_nothing_heavy():
    program = (
        "import sys\nfrom gluonize.product.cli.edge import run\nfor words in (['--help'], ['translate', '--help']): assert run(words) == 0\n"
        "heavy = {'triton', 'libcst', 'numpy', 'black', 'hypothesis'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "translate" in done.stdout and "--keep-going" in done.stdout and "130" in done.stdout


def test_cycles_of_a_generated_file_and_of_its_source(folder, capsys):
    matmul = FIXTURES / "matmul"
    (folder / "l.json").write_text((matmul / "launches.json").read_text())
    golden, source = str(matmul / "golden" / "gfx950.py"), str(matmul / "kernel.py")
    words = ["cycles", golden, "-t", "gfx950", "-l", "l.json", "--source", source, "--json", "r.json"]
    assert run(["-v", *words]) == 0
    found = results(folder)[0]
    (loop,), (theirs,) = found["cycles"]["loops"], found["triton_cycles"]["loops"]
    assert 0 < loop["efficiency"] < 1 and loop["cycles"] >= max(loop["bounds"].values())
    assert loop["place"].startswith("gfx950.py:") and theirs["place"].startswith("kernel.py:")
    assert loop["unknown_addresses"] == 0
    shown = capsys.readouterr().out
    assert "matrix cores" in shown and "Triton: kernel.py" in shown and "wave  0" in shown


@pytest.mark.compile
@pytest.mark.parametrize("command", ["compile", "parity", "cycles"])
def test_several_launches_have_a_line_each(folder, command, capsys):
    """What is shown of one in full is too long for a screen."""
    two = FIXTURES / "vector_add"
    files = [str(two / "kernel.py")] * (command == "parity") + [str(two / "golden" / "gfx950.py")]
    words = [command, *files, "-t", "gfx950", "-l", str(two / "launches.json"), "--json", "r.json"]
    assert run(words) == 0
    said = capsys.readouterr().out
    assert len(results(folder)) > 1 and said.count("\n") <= 25 and "-v" in said.splitlines()[-1], said
    assert all(f"{one['id']} " in said for one in results(folder))


def test_cycles_of_assembly(folder, capsys):
    (folder / "k.s").write_text("\tv_mfma_f32_16x16x32_f16 v[8:11], v[4:7], v[4:7], v[8:11]\n\ts_endpgm\n")
    assert run(["cycles", "k.s", "-t", "gfx950", "--num-warps", "4"]) == 0
    assert "no loop" in capsys.readouterr().out
    assert run(["cycles", "k.s", "-t", "gfx950"]) == 2
    assert "--num-warps" in capsys.readouterr().err
