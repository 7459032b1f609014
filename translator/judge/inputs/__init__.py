"""Inputs of a validation: from the launch, and made to go every way."""
