"""Whether anything intercepts or observes operations: the one flag that every operation tests."""
