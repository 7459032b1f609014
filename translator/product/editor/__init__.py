"""What an editor shows of sources and their translations, as a server of the language server protocol."""
