"""Printed TTIR and TTGIR as frozen values: the only reader of Triton's modules."""
