"""Cycles of a compiled kernel, predicted from its assembly: all waves of a compute unit walk their instruction streams.

Modules in the order they are used: `assembly` (text -> typed lines), `integers`, `values` and `paths` (what each wave executes, LDS addresses
included), `banks` (conflicts), `stream` (lines -> timed operations), `walk` (the waves, in order), `losses`, `analysis`.
"""
