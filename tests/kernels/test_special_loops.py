"""Loops of the special functions at points where 40 digits were computed, on every level.

The numbers are mpmath's, of the doubles that stand here.
"""

import numpy as np
import pytest
from cases import each

EXACT = {
    "asinh": {0.001: 0.0009999998333334083, 0.7: 0.6526665660823557, 40.0:
        4.382182848065498, 1e+300: 691.4686750787737},
    "acosh": {1.0001: 0.014142017775251545, 1.5: 0.9624236501192069, 40.0:
        4.381870348040067, 1e+300: 691.4686750787737},
    "atanh": {0.001: 0.0010000003333335333, 0.3: 0.3095196042031117, 0.75:
        0.9729550745276566, 0.9999: 4.951718775643099},
    "sinc": {0.001: 0.999998355066745, 0.3: 0.8583936913341398, 7.75: -0.02904246181151955,
        1000000.25: 2.2507902276952083e-07},
    "logit": {1e-09: -20.72326583594641, 0.2: -1.3862943611198906, 0.501:
        0.004000005333346137, 0.9999: 9.21024036697596},
    "lgamma": {1e-09: 20.723265836369194, 0.3: 1.0957979948180756, 1.1:
        -0.049872441259839764, 1.9: -0.03898427592308336, 2.3: 0.15418945495963046, 5.5:
        3.9578139676187165, 9.5: 11.689333420797269, 1000000.0: 12815504.569147611, -0.5:
        1.2655121234846454, -7.25: -7.54188344347575},
    "digamma": {1e-09: -1000000000.5772156, 0.3: -3.502524222200133, 1.4:
        -0.06138454458511624, 1.5: 0.03648997397857652, 5.5: 1.6110931485817512, 9.5:
        2.1977378764029494, 1000000.0: 13.815510057964191, -0.4: 0.9593807861068093, -7.25:
        5.189977214956288},
    "trigamma": {1e-09: 9.999999999999999e+17, 0.3: 12.245364546107732, 1.5:
        0.9348022005446793, 5.5: 0.19934238698962767, 9.5: 0.11099728846909904, 1000000.0:
        1.0000005000001667e-06, -0.5: 8.934802200544679, -7.25: 19.61035453929327},
    "erfinv": {1e-09: 8.86226925452758e-10, 0.3: 0.2724627147267543, 0.9:
        1.1630871536766743, 0.999: 2.3267537655135246, 0.999999999999: 5.042031898572696},
    "erfcx": {-20.0: 1.0442939379528289e+174, -0.5: 1.952360489182557, 0.3:
        0.7345993345676551, 5.0: 0.11070463773306863, 26.0: 0.021683584850562907, 28.0:
        0.020136801964214277, 1000000000.0: 5.641895835477563e-10},
    "ndtr": {-37.0: 5.725571222524577e-300, -9.0: 1.1285884059538405e-19, -1.0:
        0.15865525393145705, -0.1: 0.460172162722971, 0.1: 0.539827837277029, 2.0:
        0.9772498680518208},
    "log_ndtr": {-100000.0: -5000000012.431864, -37.0: -689.0305855768906, -9.0:
        -43.628149113332114, -0.5: -1.1759117615936185, 0.1: -0.6165050101150263, 2.0:
        -0.02301290932896349, 8.0: -6.220960574271786e-16},
    "ndtri": {1e-300: -37.0470962993612, 1e-20: -9.262340089798407, 1e-09:
        -5.9978070150076865, 0.1: -1.2815515655446004, 0.3: -0.5244005127080408, 0.75:
        0.6744897501960817},
    "i0": {0.1: 1.0025015629340956, 3.0: 4.8807925858650245, 7.9: 389.406283282158, 8.0:
        427.5641157218048, 40.0: 1.48947747934199e+16, 700.0: 1.5295933476718737e+302},
    "i0e": {0.1: 0.9071009257823011, 3.0: 0.2430003541618254, 7.9: 0.14436986414104191, 8.0:
        0.14343178185685032, 40.0: 0.06327827987523534, 10000.0: 0.003989472674604732},
    "i1": {0.1: 0.050062526047092694, 3.0: 3.9533702174026093, 7.9: 363.8539440845084, 8.0:
        399.8731367825601, 40.0: 1.4707396163259352e+16, 700.0: 1.5285003902339006e+302},
    "i1e": {0.1: 0.045298446808809324, 3.0: 0.19682671329730086, 7.9: 0.13489649943989376,
        8.0: 0.13414249329269817, 40.0: 0.062482229074442064, 10000.0:
        0.003989273195983662},
    "entr": {1e-09: 2.072326583694641e-08, 0.3: 0.3611918412977808, 0.9:
        0.09482446409204365, 5.0: -8.047189562170502},
}
# where these erred most before their rounding errors were taken along, or where they overflow
HARD = {
    "sinc": {-0.00015714709263451644: 0.9999999593780103, 0.00031316721570527877:
        0.9999998386752295, 2.49: 0.12777221665460567},
    "acosh": {1.0004766465053816: 0.03087421723310809, 1.0312049728047274: 0.24917471046933104},
    "ndtr": {-4.767837941343712: 9.310673699946944e-07, -0.769466913845894: 0.2208080893471881,
        -38.0: 2.88542835e-316},
    "log_ndtr": {3.6714016451134395: -0.00012061922836898403, -0.0004363325374594125:
        -0.6934953841597509},
    "erfcx": {1.604200228368478e-05: 0.9999818987961673, -0.011641331537922052:
        1.0132725526165356, -26.6: 3.894337719605585e+307},
    "i0": {5.939728437370924: 63.638856638956014, -337.20994309315176: 6.102933472045608e+144,
        713.9: 1.6481551866951379e+308},
    "i0e": {5.817857530982639: 0.1693837876828987},
    "i1": {-6.700745024915946: -117.90289943649059, 0.0004862594394445983:
        0.00024312972690824857},
    "i1e": {5.741710740077849: 0.15489777532476146, 1e+300: 3.9894228040143264e-151},
    "trigamma": {3.270205167209793e-05: 935082652.0734619, 2.53561585247094: 0.4820848341668741,
        6.459659769130341: 0.16740492004913007},
    "erfinv": {-0.0009816045135220889: -0.0008699245694730928, 0.9999999522380846:
        3.8604121869723507},
    "ndtri": {0.30973272995635415: -0.49660807180884525, 0.9998848032336989: 3.683123429481657,
        0.18778566433965826: -0.8860857362067457, 1.6586527681431355e-08: -5.523807689831417},
}
PAIRS = [
    ("polygamma", 2.0, 0.3, -75.27253658872604),
    ("polygamma", 2.0, 5.5, -0.03960894752130204),
    ("polygamma", 2.0, 20.0, -0.0026281224023146548),
    ("polygamma", 5.0, 0.3, 164634.84609922304),
    ("polygamma", 5.0, 5.5, 0.007318980739550786),
    ("polygamma", 5.0, 20.0, 8.48426620615823e-06),
    ("zeta", 1.5, 0.3, 8.237761671459724),
    ("zeta", 3.0, 2.5, 0.1181020258208637),
    ("zeta", 12.0, 0.7, 72.24933901100577),
    ("zeta", 32.93531971590064, 9.031867418037809, 3.4295401463953294e-32),
    ("zeta", 33.0, 2.5, 7.378808767672583e-14),
    ("zeta", 100.0, 0.3, 1.94032521748264e+52),
    ("zeta", 60.0, 200.0, 3.395540105111861e-138),
    ("zeta", 1.5, 1e300, 2e-150),
    ("zeta", 2.0, 1e250, 1e-250),
    ("zeta", 1.000001, 30.0, 999996.615649861),
    ("zeta", 13.985614945676913, 15.134693144390594, 5.472584033252412e-17),
    ("zeta", 23.76561933873115, 3.154305552112531, 1.392742958335082e-12),
    ("zeta", 17.357531403015663, 23.874460367135427, 2.4418572615006973e-24),
    ("zeta", 1.25, 0.75, 5.187489727099786),
    ("polygamma", 8.0, 15.57258505093551, -1.8673943834055481e-06),
    ("polygamma", 8.0, 0.130245479365672, -3738148918253.2603),
    ("polygamma", 4.0, 15.453077126293081, -0.00011956832642995795),
    ("polygamma", 25.0, 2.5, 698673845657397.8),
    ("polygamma", 8.0, 10.33863477691147, -5.568275775146485e-05),
    ("polygamma", 30.0, 4.5, -1496027027094.6128),
    ("gammainc", 0.1, 0.05, 0.7755386354510305),
    ("gammaincc", 0.1, 0.05, 0.22446136454896942),
    ("gammainc", 2.5, 1.0, 0.15085496391539036),
    ("gammaincc", 2.5, 1.0, 0.8491450360846097),
    ("gammainc", 2.5, 9.0, 0.9970535954121197),
    ("gammaincc", 2.5, 9.0, 0.0029464045878802906),
    ("gammainc", 300.0, 310.0, 0.7224887541718611),
    ("gammaincc", 300.0, 310.0, 0.2775112458281389),
    ("gammainc", 5000.0, 4900.0, 0.07794495622651391),
    ("gammaincc", 5000.0, 4900.0, 0.9220550437734861),
    ("gammainc", 2e5, 199900.0, 0.41180717826592783),
    ("gammaincc", 2e5, 199900.0, 0.5881928217340722),
    ("gammainc", 2e5, 200500.0, 0.868184223254723),
    ("gammaincc", 2e5, 200500.0, 0.13181577674527703),
    ("gamma_gradient", 0.1, 0.05, 1.3672830678368921),
    ("gamma_gradient", 2.5, 1.0, 0.6507938596862822),
    ("gamma_gradient", 2.5, 9.0, 1.891711800090848),
    ("gamma_gradient", 300.0, 310.0, 1.0170493918351244),
    ("gamma_gradient", 5000.0, 4900.0, 0.9899656565179917),
]


@each("name", EXACT)
def test_functions_of_one_number(table, name):
    x, exact = (np.array(list(values)) for values in (EXACT[name], EXACT[name].values()))
    got = table[name, "float64", "float64"](x)
    np.testing.assert_array_max_ulp(got, exact, 4)
    np.testing.assert_array_equal(table[name, "float64", "float64"].in_place(0, x), got)
    with np.errstate(over="ignore"):
        single = x.astype(np.float32)
        wide = table[name, "float64", "float64"](single.astype(float)).astype(np.float32)
    np.testing.assert_array_max_ulp(table[name, "float32", "float32"](single), wide,
                                    2 if name in ("entr", "logit") else 0)


@each("name, a, b, exact", PAIRS)
def test_functions_of_two_numbers(table, name, a, b, exact):
    got = table[name, "float64", "float64", "float64"](np.array([a]), np.array([b]))[0]
    if name in ("zeta", "polygamma"):
        np.testing.assert_array_max_ulp(got, exact, 2)
    tolerance = 1e-9 if "gradient" in name else 1e-12
    assert abs(got / exact - 1) < (tolerance if a > 1000 else 4e-15), got


@each("name, points", [
    ("lgamma", {0.0: np.inf, -3.0: np.inf, np.inf: np.inf, -np.inf: np.inf, 1: 0, 2: 0,
                -3e38: np.inf}),
    ("digamma", {0.0: -np.inf, -3.0: np.nan, np.inf: np.inf, -np.inf: np.nan}),
    ("trigamma", {0.0: np.inf, np.inf: 0}), ("i0", {0.0: 1, 1000.0: np.inf, -1000.0: np.inf}),
    ("erfinv", {0.0: 0, 1.0: np.inf, -1.0: -np.inf, 1.5: np.nan}),
    ("ndtri", {0.0: -np.inf, 0.5: 0, 1.0: np.inf, -1.0: np.nan, 1.5: np.nan}),
    ("erfcx", {np.inf: 0, -np.inf: np.inf, 0.0: 1}), ("ndtr", {np.inf: 1, -np.inf: 0}),
    ("log_ndtr", {-np.inf: -np.inf, np.inf: 0}), ("acosh", {1.0: 0, 0.5: np.nan, -3.0: np.nan}),
    ("atanh", {1.0: np.inf, -1.0: -np.inf, 1.5: np.nan}), ("asinh", {-np.inf: -np.inf}),
    ("sinc", {0.0: 1, np.inf: 0, 2.0: 0}), ("logit", {0.0: -np.inf, 0.5: 0, 1.0: np.inf}),
], ids=lambda value: value if isinstance(value, str) else "")
def test_edges(table, name, points):
    for dtype in ("float32", "float64"):
        got = table[name, dtype, dtype](np.array([*points, np.nan], dtype))
        np.testing.assert_array_equal(got, [*points.values(), np.nan])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_logit_of_numbers_near_a_half_has_all_digits(table, dtype):
    info = np.finfo(dtype)
    d = np.concatenate([np.arange(-99, 99) * info.epsneg, 2.0 ** -np.arange(3, info.nmant + 1)])
    d = d.astype(np.longdouble)
    wanted = (np.log1p(2 * d) - np.log1p(-2 * d)).astype(dtype)
    got = table["logit", dtype, dtype]((0.5 + d).astype(dtype))
    np.testing.assert_array_max_ulp(got, wanted, 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_logit_of_subnormal_numbers_is_their_logarithm(table, dtype):
    info = np.finfo(dtype)
    x = info.smallest_subnormal * 2.0 ** np.arange(info.nmant + 4)
    x = np.concatenate([x, x * 1.6]).astype(dtype)
    got = table["logit", dtype, dtype](x)
    np.testing.assert_array_max_ulp(got, np.log(x.astype(np.longdouble)).astype(dtype), 1)
    assert np.isnan(table["logit", dtype, dtype](np.append(-x, info.max))).all()


@each("name", HARD)
def test_functions_within_two_ulp(table, name):
    for points in (HARD[name], EXACT[name]):
        x, exact = (np.array(list(values)) for values in (points, points.values()))
        np.testing.assert_array_max_ulp(table[name, "float64", "float64"](x), exact, 2)


@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e"])
def test_bessel_functions_of_blocks_without_large_numbers_are_those_of_mixed_ones(table, name):
    x = np.linspace(-12, 12, 1201)[1:-1]
    alone = table[name, "float64", "float64"](x)
    mixed = table[name, "float64", "float64"](np.append(x, [20.0, -np.inf]))
    np.testing.assert_array_equal(alone, mixed[:-2])


@pytest.mark.parametrize("name", [
    *("bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1".split()),
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_computed_in_groups_have_the_bits_that_they_have_alone(table, name, dtype):
    run, rng = table[name, dtype, dtype], np.random.default_rng(5)
    x = np.append(rng.uniform(-1, 12, 600), [
        0, -0.0, 2, 5, np.nextafter(5, 6), 2**20, 2**20 + 3, 1e30, -1e30, np.inf, -np.inf, np.nan])
    x = rng.permutation(x).astype(dtype)
    alone = [run(x[i:i + 1])[0] for i in range(x.size)]
    np.testing.assert_array_equal(run(x), alone)
    np.testing.assert_array_equal(run.in_place(0, x), alone)


def test_zeta_at_the_ends(table):
    s = np.array([1.0, np.inf, np.inf, np.nan, 2.0, 2.0, 2.0, 0.5, 700.0, 1e6])
    q = np.array([5.0, 5.0, np.inf, 1.0, np.inf, np.nan, 0.0, 5.0, 3.0, 1.0])
    expected = [np.inf, 0, 0, np.nan, 0, np.nan, np.inf, np.nan, 0, 1]
    np.testing.assert_array_max_ulp(table["zeta", "float64", "float64", "float64"](s, q),
                                    np.array(expected), 0)


@each("name, border", [("erfinv", 0.9966), ("atanh", 1 / 3), ("trigamma", 8.0)])
def test_functions_of_floats_are_those_of_doubles_rounded(table, name, border):
    """float32 has series of its own, whose parts meet; few or all of a block are near 1."""
    run = table[name, "float32", "float32"]
    edge = np.float32(border).view(np.uint32) + np.arange(-2000, 2000, dtype=np.int32)
    ones = np.uint32(0x3F800000) - np.arange(3000, dtype=np.uint32)
    small = np.geomspace(1e-45, 1, 20_000)
    for x in (edge.astype(np.uint32).view(np.float32), ones.view(np.float32),
              np.linspace(-1, 1, 200_001), np.append(small, -small),
              np.tile(np.append(np.full(250, 0.25), [1, -1, np.nan, 2, 0.9999, -0.0]), 9)):
        x = x.astype(np.float32)
        with np.errstate(over="ignore"):
            exact = table[name, "float64", "float64"](x.astype(float)).astype(np.float32)
        got = run(x)
        np.testing.assert_array_max_ulp(got, exact, 1)
        assert (got != exact).sum() - np.isnan(exact).sum() < 1e-3 * x.size + 1
        np.testing.assert_array_equal(run.in_place(0, x), got)
        np.testing.assert_array_equal(np.signbit(got[x == 0]), np.signbit(exact[x == 0]))


@each("name", ["zeta", "polygamma", "gammainc", "gammaincc"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pairs_computed_side_by_side_have_the_bits_that_they_have_alone(table, name, dtype):
    run, rng = table[name, dtype, dtype, dtype], np.random.default_rng(3)
    a = np.append(rng.uniform(0, 12, 90), [0, 1, 70, 2e5, 3e5, np.inf, np.nan, 20, 3])
    b = np.append(rng.uniform(0, 12, 90), [3, 0, 0.5, 2e5, 1e3, 2.0, 1.0, 1e-6, np.inf])
    a = (np.rint(a) if name == "polygamma" else a).astype(dtype)
    b = b.astype(dtype)
    alone = [run(a[i:i + 1], b[i:i + 1])[0] for i in range(a.size)]
    for start in (0, 5, 50):
        np.testing.assert_array_equal(run(a[start:], b[start:]), alone[start:])
