"""Where a draft of the output lies while it is checked."""

from __future__ import annotations

import os
from pathlib import Path

from gluonize.product.project.output.draft import draft_path
from gluonize.read.files.modules import module_of_path


def package(root: Path) -> Path:
    """pkg/consts.py and pkg/sub/kernel.py."""
    (root / "pkg/sub").mkdir(parents=True)
    for name in ("pkg/__init__.py", "pkg/consts.py", "pkg/sub/__init__.py", "pkg/sub/kernel.py"):
        (root / name).write_text("")
    return root / "pkg/sub/kernel.py"


def test_a_draft_is_in_the_package_of_its_source(tmp_path):
    source, folder = package(tmp_path / "src"), tmp_path / "draft"
    folder.mkdir()
    draft = draft_path(str(folder), str(source), "kernel_gfx942.py")
    Path(draft).write_text("from ..consts import N\n")
    file, root = module_of_path(draft)
    assert (file.name, root) == ("pkg.sub.kernel_gfx942", str(folder))
    assert os.path.samefile(folder / "pkg/consts.py", tmp_path / "src/pkg/consts.py")
    assert not (tmp_path / "src/pkg/sub/kernel_gfx942.py").exists()


def test_an_older_output_beside_the_source_is_left_alone(tmp_path):
    source, folder = package(tmp_path / "src"), tmp_path / "draft"
    (older := source.parent / "kernel_gfx942.py").write_text("older")
    folder.mkdir()
    Path(draft_path(str(folder), str(source), older.name)).write_text("newer")
    assert older.read_text() == "older"


def test_a_source_outside_of_packages_needs_nothing_around_it(tmp_path):
    (tmp_path / "kernel.py").write_text("")
    assert draft_path(str(tmp_path), str(tmp_path / "kernel.py"), "out.py") == str(tmp_path / "out.py")


def test_a_source_may_be_the_name_of_a_module(tmp_path):
    package(tmp_path / "src")
    (folder := tmp_path / "draft").mkdir()
    assert draft_path(str(folder), "pkg.sub.kernel", "out.py", (str(tmp_path / "src"),)) == str(
        folder / "pkg/sub/out.py"
    )
