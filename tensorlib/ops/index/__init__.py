"""Reading and writing at positions: index expressions, gather and scatter, masks."""
