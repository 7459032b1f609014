"""A kernel in files: NAME.py, and NAME.json with the launch it is translated for and the runs on which it is judged."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from kernelgen.draw import Launch, RandomKernel
from gluonize.read.spec.launch import read_launches

FLAGS = ("per_target", "specialized")


def save(folder: Path, name: str, kernel: RandomKernel) -> None:
    """The JSON is a file of launch specs, too, so `gluonize translate NAME.py -l NAME.json` works."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(kernel.text)
    launch = vars(kernel.spec) | {"source": f"{name}.py"}
    more = {name: True for name in FLAGS if getattr(kernel, name)}
    data = {"version": 1, "launches": [launch], "runs": [asdict(run) for run in kernel.launches], **more}
    (folder / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n")


def load(path: Path) -> RandomKernel:
    """The kernel of NAME.json."""
    (spec,) = read_launches(str(path))
    data = json.loads(path.read_text())
    runs = tuple(Launch(run["scalars"], tuple(run["grid"]), tuple(run["omitted"])) for run in data["runs"])
    flags = {name: data.get(name, False) for name in FLAGS}
    return RandomKernel(path.with_suffix(".py").read_text(), spec, runs, path.stem, **flags)
