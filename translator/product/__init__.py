"""What people see: the command line, pages, an editor, files that are kept up to date."""
