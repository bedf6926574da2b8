"""What may handle a call instead of plain execution: one file each, on one stack per thread."""
