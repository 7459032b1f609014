"""Formulas and rules that give layouts, found from the layouts of several launches."""
