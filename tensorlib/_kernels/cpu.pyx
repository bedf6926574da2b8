"""The instruction-set levels that this processor runs, and the compiler that built them."""

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__linux__)   /* where setup.py builds the levels */
    static int runs_v2(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt")
            && __builtin_cpu_supports("ssse3");
    }
    static int runs_v3(void) {
        return runs_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
            && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    }
    static int runs_v4(void) {
        return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq")
            && __builtin_cpu_supports("avx512vl");
    }
    static const int has_levels = 1;
    #else
    static int runs_v2(void) { return 0; }
    static int runs_v3(void) { return 0; }
    static int runs_v4(void) { return 0; }
    static const int has_levels = 0;
    #endif
    """
    bint runs_v2()
    bint runs_v3()
    bint runs_v4()
    const bint has_levels


def supported_levels():
    """Names of the levels that run here, the best first."""
    if not has_levels:
        return ["base"]
    if not runs_v2():
        raise ImportError("tensorlib needs a processor with SSE4.2 (x86-64-v2)")
    return (["v4"] if runs_v4() else []) + (["v3"] if runs_v3() else []) + ["v2"]


cdef extern from *:
    """
    #if defined(__clang__)
    #define COMPILER "Clang " __clang_version__
    #elif defined(__GNUC__)
    #define COMPILER "GCC " __VERSION__
    #else
    #define COMPILER "unknown"
    #endif
    """
    const char* COMPILER


def compiler():
    """Name and version of the C compiler that built this module."""
    return COMPILER.decode()
