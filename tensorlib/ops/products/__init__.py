"""Matrix products, and what is made of them: tensor products and Einstein's sums."""
