"""Programs written for PyTorch give the same numbers when their library is tensorlib."""

from functools import cache

import pytest
from cases import each
from scripts import SCRIPTS

import tensorlib as tl
from tensorlib.testing import assert_close

# How many numbers each gives, the first, the last and the sum of their sizes, by PyTorch 2.13.
EXPECTED = {
    "training_loop": (30, 2.12206487, 0.469345913, 17.7903138),
    "adam": (6, 5.90048713, -0.0862478998, 6.91578436),
    "gradient_penalty": (17, 0.463054261, -0.868850172, 8.38401371),
    "maml": (3, 2.8613945, -1.25398281, 6.52323809),
    "newton_by_conjugate_gradients": (6, -0.0739894382, -0.50892085, 2.26381677),
    "physics_informed_network": (5, 48.7539457, 48.3642124, 242.796144),
    "neural_ode": (5, 9.35241779, -0.835087014, 38.8614001),
    "logistic_regression": (2, 0.685913429, 0.533333333, 1.21924676),
    "straight_through": (8, 0, 7, 24),
    "clipping_in_hooks": (17, 10.2106784, -0.0481789408, 14.7201879),
    "clipping_by_norm": (4, 9.51118914, 0.548736077, 11.2401843),
    "moving_average": (3, -0.00559022576, -0.238476805, 1.19120502),
    "adversaries": (10, 1.39343664, 0.759655878, 10.6814522),
    "truncated_sequences": (10, 6.52315222, 0.341055546, 15.5714202),
    "jacobians": (36, -0.253411119, -0.273276248, 20.1855534),
    "cross_entropy": (25, 1.62643485, 0.242515278, 6.12620208),
    "attention": (3, 0.182809707, 10.5219046, 11.1868048),
    "normalisation": (30, -4.54447647, 0.0151294498, 84.0913503),
    "line_search": (2, 0.356435802, 0.119517153, 0.475952956),
    "policy_gradient": (3, -1.30806826, 1.24177787, 2.61613652),
    "recurrence_written_in_place": (4, 0, -0.599199727, 26.8898781),
    "writes_into_views": (16, 0, 0, 3.52484648),
    "saved_values_through_hooks": (8, 5, 2.44891803, 24.4238602),
    "momentum": (9, 0, 0.448527964, 3.29652842),
    "fisher_information": (9, 0.17365988, 0.143239174, 1.11256366),
    "derivatives_of_derivatives": (11, -0.0560099361, 0.0564136019, 2.50480805),
    "gradients_of_parameters": (7, 3.26366461, 4.82272406, 11.8214689),
    "wave_equation": (8, -0.569706963, 0.569706963, 13.1320532),
}


@cache
def by_tensorlib(script):
    return script(tl)


@each("script", SCRIPTS)
def test_a_script_gives_pytorchs_numbers(script):
    found = by_tensorlib(script)
    count, *expected = EXPECTED[script.__name__]
    assert len(found) == count
    assert_close([found[0], found[-1], sum(abs(x) for x in found)], expected, rtol=1e-6, atol=1e-7)


@each("script", SCRIPTS)
def test_a_script_gives_the_same_numbers_on_pytorch(script):
    torch = pytest.importorskip("torch")
    assert_close(by_tensorlib(script), script(torch), rtol=1e-6, atol=1e-9)
