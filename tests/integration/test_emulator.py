"""Code objects in the emulator that `GLUONIZE_EMULATOR` names: fixtures are validated there, planted bugs are found."""

from __future__ import annotations

import json
import os

import pytest

from fixture_set import ROOT
from gluonize.judge.emulator.checkout import VARIABLE
from gluonize.product.cli.edge import run

pytestmark = [
    pytest.mark.compile,
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} names no checkout of the emulator"),
]


@pytest.fixture
def validate(tmp_path, capsys):
    """`validate(name, target, edit)`: exit status and findings by launch, of a golden after `edit(text)`."""

    def command(name: str, target: str, edit=lambda text: text) -> tuple[int, dict[str, dict]]:
        folder = ROOT / name
        text = (folder / "golden" / f"{target}.py").read_text()
        output = tmp_path / "out.py"
        output.write_text(edit(text))
        words = [str(folder / "kernel.py"), str(output), "-t", target, "-l", str(folder / "launches.json")]
        status = run(["validate", *words, "--emulator", "--json", str(tmp_path / "out.json"), "-j", "1"])
        results = json.loads((tmp_path / "out.json").read_text())["results"]
        return status, {r["id"]: r["validation"] for r in results}

    return command


@pytest.mark.parametrize("name, target", [("vector_add", "gfx942"), ("vector_add", "gfx1201"), ("softmax", "gfx942")])
def test_a_fixture_is_validated_in_the_emulator(validate, name, target):
    status, found = validate(name, target)
    assert status == 0, found
    for launch in found.values():
        assert launch["emulator"]["status"] == "validated" and launch["emulator"]["inputs"] >= 5


@pytest.mark.parametrize(
    "old, new, says",
    [
        ("mask = offsets < n_elements", "mask = offsets < n_elements - 1", "elements differ"),
        ("    output = x + y\n", "    output = x - y\n", "elements differ"),
        ("buffer_store(output, output_ptr, offsets, mask=mask)", "buffer_store(output, output_ptr, offsets)", "fault"),
    ],
)
def test_a_planted_bug_is_found(validate, old, new, says):
    def plant(text: str) -> str:
        assert text.count(old) == 1
        return text.replace(old, new)

    status, found = validate("vector_add", "gfx942", plant)
    assert status == 1
    for launch in found.values():
        assert launch["emulator"]["status"] == "mismatch" and says in launch["emulator"]["reason"]
        assert launch["emulator"]["source"] == "agrees"
