cdef tuple run_backward(tuple roots, tuple grads, bint retain_graph, bint create_graph,
                         tuple inputs, bint accumulate_grads, tuple no_grad_set=*,
                         bint shallow=*)
