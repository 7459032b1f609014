"""What the names of a program mean: a static evaluation of Python that ends without a value rather than guess."""
