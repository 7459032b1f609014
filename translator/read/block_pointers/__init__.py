"""Block pointers, which Triton had up to 3.8, as the tensors of pointers and masks that they stand for."""
