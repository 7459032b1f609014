"""Loops that are split between warps that copy and warps that compute."""
