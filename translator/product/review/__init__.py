"""What commands find, for those who review code elsewhere: code scanning, annotations and comments of pull requests."""
