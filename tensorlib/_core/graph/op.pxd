
from tensorlib._core.tiles.program cimport TileProgram

cdef enum:
    MAX_WANTS = 64       # that the parameters of a forward-mode rule may be
    MAX_PARAMETERS = 16  # of a gradient rule

# Which integers, or bools, in the arguments of an operation are errors.
cdef enum Guard:
    NOTHING
    BOOLS         # in any argument: see `no_bools`
    ZEROS
    NEGATIVES

# The kind of a rule, once it is traced.
cdef enum RuleKind:
    PASS          # the gradient is passed on unchanged
    ZERO          # the derivative is zero everywhere
    TILES         # an element-wise formula, as a tile program
    SPREAD        # the gradient is repeated over the dims that were reduced
    FUNCTION      # a function of tensors

# What a parameter of a rule refers to.
cdef enum Want:
    GRADIENT
    TANGENT
    SAVED
    INPUTS           # all tensors of a sequence
    ATTRIBUTE
    SHAPE
    NDIM
    DTYPE
    NODE

cdef class Rule:
    """How the gradient of one input (or of all, when `joint`) follows from what was saved, or the
    tangent of the output from those of the inputs."""
    cdef readonly object function
    cdef readonly tuple names
    cdef RuleKind kind
    cdef int n_wants
    cdef unsigned char wants[MAX_WANTS]
    cdef unsigned char places[MAX_WANTS]
    cdef unsigned int mask             # the saved values it needs, a bit each
    cdef TileProgram program
    cdef readonly bint joint
    cdef bint widens                   # half types are computed in float32
    cdef TileProgram conjugated        # `program` for complex numbers, once asked for
    cdef object conjugate              # that: a TileProgram, or what makes
                                       # it when it is first asked for; None where nothing does
    cdef TileProgram tiles_of(self, bint complex_numbers)

cdef class Op:
    cdef readonly str name
    cdef readonly str doc
    cdef readonly str node_name
    cdef readonly tuple arguments      # names of the tensors it takes
    cdef readonly tuple attributes     # names of the other arguments
    cdef readonly tuple defaults       # of the attributes
    cdef readonly tuple outputs        # names of the results
    cdef readonly object forward
    cdef readonly str linearity        # a key of RULES in autograd/tangent.py, "composite", or ""
    cdef readonly Rule tangent_rule
    cdef readonly bint differentiable
    cdef readonly bint elementwise
    cdef readonly bint variadic        # takes a sequence of tensors
    cdef readonly bint is_view
    cdef readonly bint takes_out       # its function has `out=`
    cdef readonly bint random          # draws random numbers
    # Facts (`ops/facts.py`). One that is not declared has the conservative value: not pure, reading
    # values, checking them, and with a shape that depends on them.
    cdef readonly bint pure            # the same bits for the same values, but for what it draws;
                                       # it changes nothing
    cdef readonly bint reads_values    # it reads elements as numbers, so it raises on `meta`
    cdef readonly bint checks_values   # it raises for some values
    cdef readonly bint sized_by_values # the shape of its result follows from elements
    cdef readonly bint may_view        # a view where that is possible, else a copy
    cdef readonly bint takes_complex   # it takes complex numbers
    cdef readonly bint packs           # a matrix that it returns is new and row-major
    cdef readonly bint whole           # a capture records it as one call, not as its parts
    cdef readonly bint affine          # linear in each argument, up to a term of others
    cdef readonly str key              # the attribute that is an index expression, or ""
    cdef readonly tuple draws          # the functions that draw its numbers; or None
    cdef readonly str family           # the module that declared it
    cdef readonly object multiplications  # their number, of the inputs' shapes and the result's
    cdef readonly object returns       # the type of what it gives: Tensor, or bool or int, ...
    cdef readonly object convert       # converts the arguments of a call to those of `forward`
    cdef readonly tuple places         # of the arguments among all that a call takes
    cdef public object function        # the public function
    cdef public object formula         # of one made of operations: does a call given proxies,
                                       # where `forward` itself does not
    cdef public dict testing           # reference, samples, edges, waivers: what the tests use
    cdef readonly tuple rules          # Rule or None for each argument
    cdef object backward               # the backward operation, once asked for
    cdef frozenset kept_attributes     # those that some rule names
    cdef int n_args
    cdef bint to_float                 # integers are computed as the default float
    cdef Guard guard                   # what integers the last argument may not hold
    cdef tuple no_bools                # the errors for one that is bool, and for all that are
    cdef readonly tuple boolean_inputs # places of the arguments that are bool
    cdef int rounded                   # bits of the arguments of which a number is rounded first
    cdef int loop
    cdef TileProgram program
    cdef Rule make_rule(self, function, names, int most)
    cdef int resolve(self, Rule rule, int i, str name) except -1
