"""The server ends when it is told to, whatever its threads wait for."""

from __future__ import annotations

from editor_client import Editor

STUCK = """
import time
from gluonize.product.editor.work import Work
Work.read = lambda *_: time.sleep(1000)
"""


def test_the_end_does_not_wait_for_threads(translated):
    editor = Editor(translated("softmax")[0], "--no-validate", first=STUCK)
    editor.open("kernel_gfx950.py")
    editor.hover("kernel_gfx950.py", 1, 0)
    assert editor.close() == 0


def test_an_end_without_a_shutdown_is_a_failure(tmp_path):
    editor = Editor(tmp_path)
    editor.loop.call_soon_threadsafe(editor.client.exit, None)
    assert editor.call(editor.process.wait()) == 1
