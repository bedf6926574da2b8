cdef bint maps_over_batches() noexcept
