"""The short text of guarantees: there and back again."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import farthing as fa
from farthing.guarantees.notation import (
    KINDS,
    SAMPLES,
    format_guarantee,
    parse_guarantee,
    parse_item,
)
from laws.kinds import GUARANTEES, REPLACED

positive = st.floats(min_value=1e-300, max_value=1e300)
rate = st.floats(min_value=0, max_value=1, exclude_min=True)
share = st.floats(min_value=0, max_value=1, exclude_max=True)
anything = st.one_of(
    st.builds(fa.PureDP, positive),
    st.builds(fa.BoundedRange, positive),
    st.builds(fa.ApproximateDP, positive, share),
    st.builds(fa.Laplace, positive),
    st.builds(fa.Gaussian, positive),
    st.builds(fa.ConcentratedDP, positive, positive),
    st.builds(fa.ZeroConcentratedDP, positive, positive, share),
    st.builds(fa.TruncatedConcentratedDP, positive, st.floats(min_value=1.001, max_value=1e300)),
    st.builds(fa.Subsampled, st.builds(fa.Gaussian, positive), rate),
    st.builds(fa.Subsampled, st.builds(fa.ApproximateDP, positive, share), rate),
    st.builds(fa.SubsampledWithoutReplacement, st.builds(fa.Laplace, positive), rate),
)


@given(anything)
def test_round_trip(guarantee):
    assert parse_guarantee(format_guarantee(guarantee)) == guarantee


@given(anything, st.integers(min_value=1, max_value=10**12))
def test_round_trip_with_a_count(guarantee, count):
    assert parse_item(f"{count}x{format_guarantee(guarantee)}") == (guarantee, count)


@pytest.mark.parametrize(
    ("text", "guarantee", "count"),
    [
        ("br:0.1", fa.BoundedRange(0.1), 1),
        ("100xbr:0.1", fa.BoundedRange(0.1), 100),
        (" 20xdp:1e-1 ", fa.PureDP(0.1), 20),
        ("adp:0.1,1e-9", fa.ApproximateDP(0.1, 1e-9), 1),
        ("lap:2", fa.Laplace(2.0), 1),
        ("gauss:20", fa.Gaussian(20.0), 1),
        ("cdp:0.1,0.2", fa.ConcentratedDP(0.1, 0.2), 1),
        ("zcdp:0.1", fa.ZeroConcentratedDP(0.1), 1),
        ("zcdp:0.1,-0.05", fa.ZeroConcentratedDP(0.1, -0.05), 1),
        ("7xzcdp:0.1,0,1e-9", fa.ZeroConcentratedDP(0.1, 0.0, 1e-9), 7),
        ("1000xpoisson:0.01/gauss:1.0", fa.Subsampled(fa.Gaussian(1.0), 0.01), 1000),
        ("poisson:1/dgauss:2,3", fa.Subsampled(fa.DiscreteGaussian(2.0, 3), 1.0), 1),
        ("subset:0.5/lap:2", fa.SubsampledWithoutReplacement(fa.Laplace(2.0), 0.5), 1),
        ("tcdp:0.1,5", fa.TruncatedConcentratedDP(0.1, 5.0), 1),
    ],
)
def test_examples(text, guarantee, count):
    assert parse_item(text) == (guarantee, count)


def test_every_kind_but_curves_has_a_notation():
    written = {type(g) for g in (*GUARANTEES.values(), *REPLACED.values())} - {fa.RenyiDP}
    assert {*KINDS.values(), *SAMPLES.values()} == written


@pytest.mark.parametrize(
    "text",
    [
        "",
        "br",
        "br:",
        "br:x",
        "br:0.1,0.2",
        "poisson:0.1",
        "poisson:/gauss:1",
        "poisson:0.1/",
        "poisson:0.1/5xgauss:1",
        "poisson:0/gauss:1",
        "poisson:1.5/gauss:1",
        "rdp:0.1",
        "BR:0.1",
        ":0.1",
        "0xbr:0.1",
        "-1xbr:0.1",
        "2.5xbr:0.1",
        "1e3xbr:0.1",
        "xbr:0.1",
        "truexbr:0.1",
        "br:nan",
        "br:inf",
        "br:-1",
        "br:1e400",
        "adp:0.1",
        "adp:0.1,1",
        "gauss:0",
        "tcdp:0.1",
        "tcdp:0.1,1",
        "zcdp:0.1,0,0,0",
        "zcdp:",
        "10 x br:0.1",
        "br=0.1",
        "br:0.1;dp:0.1",
        "²xbr:0.1",
        "٣xbr:0.1",
        "br:0.1 0.2",
        "dp:True",
        "9" * 5000 + "xbr:0.1",
    ],
    ids=lambda text: text[:20],
)
def test_what_cannot_be_read_raises(text):
    with pytest.raises(fa.InvalidInput) as caught:
        parse_item(text)
    assert str(caught.value)


def test_a_guarantee_has_no_count():
    for text in ("1xbr:0.1", "5xbr:0.1"):
        with pytest.raises(fa.InvalidInput, match="without a count"):
            parse_guarantee(text)


def test_numbers_keep_every_digit():
    for value in (0.1, 1 / 3, math.nextafter(1.0, 2.0), 5e-324, 1.7976931348623157e308):
        assert parse_guarantee(format_guarantee(fa.PureDP(value))).epsilon == value
