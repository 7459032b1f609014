"""What the benchmarks run over: the repository's fixtures, or a folder of sources with a file of launch specs."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from gluonize.read.files.source_names import source_folders
from gluonize.read.spec.launch import LaunchSpec, read_launches
from gluonize.read.spec.selected import source_of_launch
from gluonize.request import TranslateRequest

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ("gfx942", "gfx950", "gfx1250", "gfx1100", "gfx1201")


@dataclass(frozen=True)
class Unit:
    """What one translation is made of: a source (path or module) with its launches, and where modules are looked for."""

    source: str
    launches: tuple[LaunchSpec, ...]
    search_path: tuple[str, ...]
    standalone: bool

    def request(self, target: str) -> TranslateRequest:
        """What `gluonize translate` asks for: a whole file of a fixture, one kernel of a package."""
        return TranslateRequest(
            source=self.source,
            target=target,
            kernels=tuple(dict.fromkeys(spec.kernel for spec in self.launches)),
            launches=self.launches,
            search_path=self.search_path,
            keep_going=True,
            standalone=self.standalone,
        )


def fixture_units(only: str = "") -> list[Unit]:
    """One unit per fixture, with the launches whose id contains `only`."""
    out = []
    for kernel in sorted((ROOT / "fixtures").glob("*/kernel.py")):
        source = str(kernel)
        specs = read_launches(str(kernel.parent / "launches.json"))
        chosen = tuple(replace(spec, source=source) for spec in specs if only in spec.id)
        if chosen:
            out.append(Unit(source, chosen, source_folders(source), False))
    return out


def folder_units(folder: Path, launches: Path | None = None, only: str = "") -> list[Unit]:
    """One unit per launch of a file (`launches.json` of the folder when None) whose sources are modules in the folder.

    Sources that are paths are relative to the launch file.
    """
    path = str(launches or folder / "launches.json")
    out = []
    for spec in read_launches(path):
        if only in spec.id:
            source = source_of_launch(spec, path)
            spec = replace(spec, source=source)
            out.append(Unit(source, (spec,), (*source_folders(source), str(folder.resolve())), True))
    return out


def chosen_units(folder: Path | None, launches: Path | None, only: str) -> list[Unit]:
    """Units of the folder that was given, or of the fixtures."""
    return folder_units(folder, launches, only) if folder else fixture_units(only)


def write_launches(units: list[Unit], path: Path) -> None:
    """One launch file for `gluonize translate --launches`, every launch with its source."""
    specs = [spec.as_json() for unit in units for spec in unit.launches]
    path.write_text(json.dumps({"version": 1, "launches": specs}) + "\n")
