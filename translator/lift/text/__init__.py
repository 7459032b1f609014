"""The lifted kernel as Triton source."""
