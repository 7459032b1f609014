"""What fills the slots of a loop: copies to LDS, the data mover, registers."""
