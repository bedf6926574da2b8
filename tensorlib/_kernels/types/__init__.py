"""The types that loops are compiled for, and conversions of half types."""
