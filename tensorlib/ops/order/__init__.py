"""What follows from the order of elements: sorting, searching, medians and quantiles."""
