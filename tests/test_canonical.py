"""RFC 8785: one text for one value."""

import json
import math
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tramai import codec
from tramai.canonical import exactly, number, rfc8785

# RFC 8785, appendix B: IEEE 754 bits and the text of the number.
NUMBERS = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555554", "333333333.33333325"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]


@pytest.mark.parametrize(("bits", "text"), NUMBERS)
def test_a_number_is_written_as_the_standard_says(bits: str, text: str) -> None:
    assert number(struct.unpack(">d", bytes.fromhex(bits))[0]) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), [1, {"a": float("nan")}]])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(codec.NotJson):
        rfc8785(value)


def test_keys_are_ordered_by_utf16_code_units() -> None:
    # U+1F600 is written with surrogates, which come before U+FB33.
    assert rfc8785({"\ufb33": 1, "\U0001f600": 2, "€": 3, "1": 4, "\r": 5}) == (
        '{"\\r":5,"1":4,"€":3,"\U0001f600":2,"\ufb33":1}'
    )


def test_integers_are_exact_at_any_size() -> None:
    assert (
        rfc8785([2**53 + 1, 738529527931269425, -(10**400)]) == f"[9007199254740993,738529527931269425,-1{'0' * 400}]"
    )


def test_an_integer_of_more_digits_than_python_writes_is_refused() -> None:
    with pytest.raises(codec.NotJson):
        rfc8785(10**5000)


def test_control_characters_are_escaped_in_lower_case_and_nothing_else_is() -> None:
    assert rfc8785('\x00\x1f\x7f\b\t\n\f\r"\\/é\u2028') == '"\\u0000\\u001f\x7f\\b\\t\\n\\f\\r\\"\\\\/é\u2028"'


# The first draw reads tables of characters, which takes seconds where many tests share a core.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_the_fast_way_writes_what_the_exact_way_writes(value: codec.Json) -> None:
    text = rfc8785(value)
    assert text == exactly(value)
    assert rfc8785(json.loads(text)) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back_as_itself(value: float) -> None:
    assert float(number(value)) == value
    assert math.copysign(1, float(number(value))) == (math.copysign(1, value) if value else 1)
