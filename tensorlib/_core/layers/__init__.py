"""What is a layer of a network: convolutions, pools, attention, recurrence, norms and losses."""
