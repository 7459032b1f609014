"""The reference machine: runs TTIR and TTGIR on the CPU, and finds hazards."""
