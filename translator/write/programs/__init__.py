"""The numbers of programs: dealt anew, or several to one program."""
