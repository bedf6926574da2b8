"""Operations element by element, with broadcasting, and conversions between dtypes."""
