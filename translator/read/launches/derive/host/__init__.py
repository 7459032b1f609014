"""What host code shows of a launch: it is run on a model of its inputs."""
