"""What may do a call in the place of plain execution: one file each, on one stack per thread."""
