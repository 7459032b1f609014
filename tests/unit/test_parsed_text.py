"""Threads that read syntax trees at a time."""

from __future__ import annotations

import ast
import gc
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from gluonize.read.text.parsed import parsed_text

TEXT = "def f(x):\n    return (x + (1 * (2 - (3 // x))))\n" * 40


@pytest.mark.slow
def test_threads_read_trees_at_a_time():
    """Collections while a tree is made let other threads go on."""
    expected, before = ast.dump(ast.parse(TEXT)), gc.get_threshold()
    gc.callbacks.append(yields := lambda *_: time.sleep(0))
    gc.set_threshold(50)
    try:
        with ThreadPoolExecutor(8) as threads:
            trees = list(threads.map(parsed_text, [TEXT] * 64))
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(yields)
    assert {ast.dump(tree) for tree in trees} == {expected}
