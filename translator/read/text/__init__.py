"""The text of a source: parsed, moved by lines, in the style of its project."""
