"""The order of elements: sorting, searching, medians and quantiles."""
