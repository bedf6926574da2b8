"""Settings of PyTorch's code generator, which are stored, without effect.

>>> tensorlib._inductor.config.coordinate_descent_tuning = True
"""

from types import SimpleNamespace

from ._dynamo import Config

config = Config(coordinate_descent_tuning=False, fallback_random=False, max_autotune=False,
                fx_graph_cache=True, triton=SimpleNamespace(cudagraphs=False,
                                                            unique_kernel_names=True),
                cpp=SimpleNamespace(threads=-1, simdlen=None))
