"""Elements that are sorted, ranked, chosen and counted."""
