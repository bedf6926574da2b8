"""What is recorded: operations, the nodes of those that ran, and the values these keep."""
