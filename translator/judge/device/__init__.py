"""Real devices: bundles of code objects, the runner that executes them, re-targeting to CUDA where no AMD GPU is at hand."""
