"""Shell completion, color, and what `-v` logs."""

import os
import re
import subprocess
import sys

import pytest

from gluonize.product.cli.app import app_for
from gluonize.product.cli.edge import run
from gluonize.product.cli.options import complete_target, complete_word
from gluonize.rules.targets import TARGETS


def gluonize(*arguments, **environment):
    """What the command prints, as a user's shell starts it."""
    command = [sys.executable, "-c", "from gluonize.product.cli import main; main()", *arguments]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def printed(monkeypatch, capsys):
    """The same in this process."""

    def gluonize(*arguments, **environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        try:
            assert run(arguments) == 0
        except SystemExit as end:  # completion ends the process
            assert not end.code
        return capsys.readouterr().out

    monkeypatch.delenv("NO_COLOR", raising=False)
    return gluonize


@pytest.mark.parametrize(
    "words, expected",
    [
        ("gluonize tr", ["translate"]),
        ("gluonize translate x.py -t gfx95", ["gfx950"]),
        ("gluonize translate x.py -t gfx942,gfx12", ["gfx942,gfx1250", "gfx942,gfx1200", "gfx942,gfx1201"]),
        ("gluonize --color n", ["never"]),
        ("gluonize validate --no-va", ["--no-variants"]),
        ("gluonize validate a.py b.py --device c", ["cuda", "cpu"]),
        ("gluonize diff a.py --format g", ["github"]),
        ("gluonize translate a.py --strategy w", ["warp-specialized"]),
    ],
)
def test_bash_completes(printed, words, expected):
    asked = {"_GLUONIZE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    assert printed(**asked).split() == expected
    if words == "gluonize tr":
        assert gluonize(**asked).split() == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for(printed, shell):
    assert "gluonize" in printed("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")


def test_a_target_is_not_offered_twice():
    assert complete_target("gfx942,gfx94") == [] and complete_target("") == [*TARGETS, "all"]
    assert complete_word("auto", "always", "never")("a") == ["auto", "always"]


def test_color_only_when_asked_or_on_a_terminal(printed):
    escape = re.compile(r"\x1b\[")
    assert not escape.search(printed("targets"))
    assert escape.search(printed("--color", "always", "targets"))
    assert not escape.search(printed("--color", "never", "targets"))
    assert not escape.search(printed("targets", NO_COLOR="1", FORCE_COLOR="1"))


COMMANDS = [command.name or command.callback.__name__.rstrip("_") for command in app_for(()).registered_commands]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_one_style(name, capsys):
    assert run([name, "-h"]) == 0
    short = capsys.readouterr().out
    assert run([name, "--help"]) == 0 and capsys.readouterr().out == short
    assert short.lstrip().startswith(f"Usage: gluonize {name} [OPTIONS]") and "Show this message and exit." in short
    assert run([name, "--no-such-option"]) == 2
    assert "--no-such-option" in capsys.readouterr().err


def test_help_of_translate_is_in_panels(capsys):
    assert run(["translate", "--help"]) == 0
    shown = capsys.readouterr().out
    places = [
        shown.index(f"─ {panel} ─") for panel in ("Options", "Launches", "Results", "Checks", "How it is written")
    ]
    assert places[0] == min(places) and "[tool.gluonize]" in shown  # which is no markup


@pytest.mark.parametrize("words", ["validate a b -t gfx942 -l c", "bundle a -t gfx942 -l c -o d", "run-bundle a"])
def test_a_device_that_does_not_exist_is_refused(words, capsys):
    assert run([*words.split(), "--device", "abacus"]) == 2
    assert "'abacus' is none of" in capsys.readouterr().err
