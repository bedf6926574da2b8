"""C functions of compiled modules, callable from tests through ctypes."""

import ctypes

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype = ctypes.c_char_p
_name.argtypes = [ctypes.py_object]


def c_function(module, name, restype, *argtypes):
    """The function `name` that `module` offers to other compiled modules through its .pxd."""
    capsule = module.__pyx_capi__[name]
    return ctypes.CFUNCTYPE(restype, *argtypes)(_pointer(capsule, _name(capsule)))
