"""The goldens are the translator's output, so they are collected once there is a translator."""

from __future__ import annotations

import importlib.util

collect_ignore = [] if importlib.util.find_spec("gluonize.translation") else ["test_goldens.py"]
