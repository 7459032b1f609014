"""Named choices: what was asked for or found by a search, over the defaults of `rules/choices.py`."""
