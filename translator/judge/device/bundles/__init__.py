"""Building a bundle: code objects, inputs and expected outputs."""
