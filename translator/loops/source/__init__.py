"""Changes to a loop's source before it is planned: helpers put in place, iterations peeled."""
