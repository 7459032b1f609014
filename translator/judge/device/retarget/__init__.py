"""Modules for AMD GPUs as modules for a CUDA device."""
