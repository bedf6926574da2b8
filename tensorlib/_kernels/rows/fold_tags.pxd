"""Tags: types without values, which choose an operation when a fold is specialised."""

ctypedef struct Sum:
    char unused
ctypedef struct NanSum:
    char unused
ctypedef struct Product:
    char unused
ctypedef struct Squares:
    char unused
ctypedef struct Max:
    char unused
ctypedef struct Min:
    char unused
