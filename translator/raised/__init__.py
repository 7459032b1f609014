"""What Triton's compiler made of a kernel, as Gluon that one can edit."""
