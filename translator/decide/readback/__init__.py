"""What Triton's passes decided about loads and operands: staged in LDS, held in registers, read late."""
