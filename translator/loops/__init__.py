"""Loops whose loads run ahead: plans, forms, copies and passes."""
