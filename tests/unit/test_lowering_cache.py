"""The folder for compiled kernels."""

import json
import os
import shutil

import pytest

from gluonize.diagnostics import TranslationError
from gluonize.judge.lower.cache_folder import prune_cache_folder, use_cache_folder
from gluonize.judge.lower.compiler_digest import kept_digest
from gluonize.judge.lower.jobs import lower_file
from gluonize.product.cli.edge import run
from gluonize.read.spec.launch import parse_launches
from gluonize.triton_api.compile_cache import compiler_files


def test_the_users_folder_wins(monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    assert use_cache_folder() == tmp_path


def test_our_own_folder_follows_xdg(monkeypatch, tmp_path):
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert use_cache_folder() == tmp_path / "gluonize" / "triton"
    assert os.environ["TRITON_CACHE_DIR"] == str(tmp_path / "gluonize" / "triton")
    monkeypatch.delenv("TRITON_CACHE_DIR")


def test_a_cache_that_cannot_be_made_moves_to_the_temporary_folder(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    folder = use_cache_folder()
    assert folder.is_dir() and folder.is_relative_to(tmp_path)
    monkeypatch.delenv("TRITON_CACHE_DIR")


def test_the_digest_of_the_compiler_is_made_again_where_a_file_changed(tmp_path):
    files, kept, made = [tmp_path / name for name in ("a.py", "lib.so")], tmp_path / "kept.json", []

    def make() -> str:
        made.append("".join(file.read_text() for file in files))
        return made[-1]

    for file in files:
        file.write_text("1")
    assert [kept_digest(kept, files, make) for _ in range(2)] == ["11"] * 2 and len(made) == 1
    files[1].write_text("2")
    assert kept_digest(kept, files, make) == "12"
    kept.write_text(kept.read_text().replace('"12"', '"13"'))  # what is damaged is not believed
    assert kept_digest(kept, files, make) == "12" and len(made) == 3
    kept.write_text("[")
    assert kept_digest(kept, files, make) == "12" and len(made) == 4
    assert kept_digest(tmp_path / "nowhere" / "kept.json", files, make) == "12"


def test_the_digest_of_the_compiler_is_tritons(tmp_path):
    from triton.runtime.cache import triton_key

    genuine = getattr(triton_key, "__wrapped__", triton_key)  # None was given yet, or one that was kept
    read = {str(path) for path in compiler_files()}
    assert any("libtriton" in path for path in read) and len(read) > 100
    for _ in range(2):
        assert kept_digest(tmp_path / "kept.json", compiler_files(), genuine) == triton_key()


def test_the_oldest_entries_go_first(tmp_path):
    ours = tmp_path / "gluonize" / "triton"
    for age in range(5):
        (ours / str(age)).mkdir(parents=True)
        os.utime(ours / str(age), (1000 - age, 1000 - age))
    told = []
    assert prune_cache_folder(ours, keep=3, told=lambda: told.append(1)) == 2 == len(told)
    assert sorted(os.listdir(ours)) == ["0", "1", "2"]


def test_a_folder_of_the_user_is_never_pruned(tmp_path):
    for folder in (tmp_path / "mine", tmp_path / "gluonize" / "mine"):
        (folder / "kernel").mkdir(parents=True)
        assert prune_cache_folder(folder, keep=0) == 0 and os.listdir(folder) == ["kernel"]


SCALE = """
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) * 3)
"""
SPEC = {
    "kernel": "scale_kernel",
    "signature": {"x_ptr": "*fp32", "BLOCK": "constexpr"},
    "constexprs": {"BLOCK": 256},
    "options": {"num_warps": 4},
}
DAMAGES = {
    "__grp__scale_kernel.json": ('{"child_paths": [1]}', "[]", '{"child_paths": "x"}'),
    "scale_kernel.json": ("", "[]", "{}", "not json"),
    "scale_kernel.amdgcn": ("", "\t.text\n"),
    "scale_kernel.hsaco": ("", "text"),
    "scale_kernel.ttgir": ("",),
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A folder with a source, its launches, and Triton's cache after it was compiled."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "scale.py").write_text(SCALE)
    (folder / "l.json").write_text(json.dumps(SPEC))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(folder / "cache"))
        lower_file(str(folder / "scale.py"), parse_launches(SPEC)[0], "gfx942")
    return folder


@pytest.fixture
def entry(compiled, tmp_path, monkeypatch):
    """A copy of the cache; -> the entry in it. Triton's entries name their files by whole paths."""
    shutil.copytree(compiled, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("GLUONIZE_CACHE_DIR", str(tmp_path / "results"))
    monkeypatch.chdir(tmp_path)
    (group,) = (tmp_path / "cache").glob("*/__grp__scale_kernel.json")
    group.write_text(group.read_text().replace(str(compiled), str(tmp_path)))
    return group.parent


@pytest.fixture
def plain_manager(monkeypatch):
    """Triton's own manager, which looks into nothing that it reads."""
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "triton.runtime.cache:FileCacheManager")


EVERY_DAMAGE = pytest.mark.parametrize(
    "name, text", [(name, text) for name, texts in DAMAGES.items() for text in texts], ids=repr
)


@pytest.mark.one_of(4)
@EVERY_DAMAGE
def test_a_damaged_entry_is_made_anew(entry, name, text, caplog):
    (entry / name).write_text(text)
    assert lower_file("scale.py", parse_launches(SPEC)[0], "gfx942").metrics.vgpr > 0
    assert f"{entry} is damaged: it is made anew" in caplog.text
    assert len((entry / "scale_kernel.hsaco").read_bytes()) > 1000


@pytest.mark.one_of(4)
@EVERY_DAMAGE
def test_a_damaged_entry_of_another_manager_is_named_with_what_to_do(entry, plain_manager, name, text):
    source = "scale.py"
    (entry / name).write_text(text)
    with pytest.raises(TranslationError) as caught:
        lower_file(source, parse_launches(SPEC)[0], "gfx942")
    (found,) = caught.value.diagnostics
    assert (found.code, found.file, found.help) == (
        "compiler-cache",
        str(entry),
        "delete that folder; it is made again",
    )
    assert "damaged" in found.message and "scale_kernel (triton, gfx942)" in found.message and found.why
    shutil.rmtree(entry)
    assert lower_file(source, parse_launches(SPEC)[0], "gfx942").metrics.vgpr > 0


def test_an_entry_that_triton_makes_again_is_no_error(entry):
    (entry / "__grp__scale_kernel.json").write_text("not json")
    (entry / "scale_kernel.llir").unlink()
    assert lower_file("scale.py", parse_launches(SPEC)[0], "gfx942").metrics.vgpr > 0


def test_a_folder_that_cannot_be_used_is_named(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "scale.py").write_text(SCALE)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(TranslationError, match="Triton's cache cannot be used"):
        lower_file(str(tmp_path / "scale.py"), parse_launches(SPEC)[0], "gfx942")


def test_translate_says_so_and_writes_nothing(entry, plain_manager, capsys):
    (entry / "__grp__scale_kernel.json").write_text('{"child_paths": [1]}')
    words = ["translate", "scale.py", "-t", "gfx942", "-l", "l.json", "-o", "out.py", "-q"]
    assert run(words) == 2
    printed = capsys.readouterr().err
    assert f"cache/{entry.name}: scale_kernel (triton, gfx942): this entry of Triton's own cache is damaged" in printed
    assert not list(entry.parents[1].glob("out*.py"))
    shutil.rmtree(entry)
    assert run(words) == 0
