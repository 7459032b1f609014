"""What raised variables, layouts and sizes are called: as in the source, where the module or the source says so."""
