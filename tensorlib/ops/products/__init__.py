"""Matrix products, tensor products and Einstein summation."""
