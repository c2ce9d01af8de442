"""What is masked, in which spellings, also in pieces; and what it costs."""

from __future__ import annotations

import base64
import json
import random
import re
import shlex
import subprocess
import time
from urllib.parse import quote, quote_plus, urlencode

import pytest

from tramai import redact
from tramai.codec import decode, encode
from tramai.redact import MASK, Redactor, stream
from tramai.steps._capture import Capture

VALUES = ["S3cr3t-Val+/=ue", "p\"a's s\\w$ö<rd&1", "plainword", "two lines\nof a 'key'", "x/y?z=ä&b`c`"]


def spellings(value: str) -> dict[str, str]:
    data = value.encode()
    return {
        "plain": value,
        "json": json.dumps(value),
        "json with all characters": json.dumps(value, ensure_ascii=False),
        "json with escaped slashes": json.dumps(value).replace("/", "\\/"),
        "json for pages": json.dumps(value).replace("<", "\\u003c").replace("&", "\\u0026"),
        "json in json": json.dumps(json.dumps(value)),
        "url part": quote(value, safe=""),
        "url path": quote(value),
        "url in lower case": quote(value, safe="").lower() if value.islower() else quote(value, safe=""),
        "form": quote_plus(value),
        "query": urlencode({"key": value}),
        "javascript": quote(value, safe="!*'()"),
        "shell": shlex.quote(value),
        "repr": repr(value),
        "markup": value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;").replace("'", "&#x27;"),
        "hex": data.hex(),
        "upper hex": data.hex().upper(),
        **{
            f"base64 after {n}": base64.b64encode(b"\1" * n + data + b"\1" * m).decode()
            for n in range(4)
            for m in (0, 1)
        },
        "base64 for urls": base64.urlsafe_b64encode(data).decode(),
        "base64 without padding": base64.b64encode(data).decode().rstrip("="),
        "basic auth": base64.b64encode(b"user:" + data).decode(),
    }


def core(value: str, name: str, spelled: str) -> str:
    """The part of a spelling that depends on the value alone."""
    if name.startswith("base64 after") or name == "basic auth":
        return spelled[8:-4]
    return spelled.strip("\"'")


@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_masked_in_every_spelling(value: str) -> None:
    redactor = Redactor([value])
    for name, spelled in spellings(value).items():
        masked = redactor.text(f"before {spelled} after")
        assert MASK in masked, name
        assert core(value, name, spelled) not in masked, name
        assert masked.startswith("before "), name
        assert masked.endswith(" after"), name


@pytest.mark.parametrize("value", VALUES)
def test_what_a_real_shell_quotes_is_masked(value: str) -> None:
    done = subprocess.run(
        ["bash", "-c", 'printf "%q\\n" "$1"; set -x; : "$1"; declare -p 1 2>/dev/null; v=$1; declare -p v', "-", value],
        capture_output=True,
        check=True,
    )
    for text in (done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")):
        assert MASK in Redactor([value]).text(text)
        assert "two lines" not in Redactor([value]).text(text)


def test_each_line_of_a_value_is_masked_with_its_indentation_or_without() -> None:
    redactor = Redactor(["-----BEGIN-----\n  first line\nsecond\r\nx\n"])
    assert redactor.text("first line, second") == "***, ***"
    assert redactor.text("  first line\nx") == "  ***\nx", "a line of three characters or less is not looked for"


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64])
def test_a_value_in_pieces_is_masked(piece: int) -> None:
    for value in VALUES:
        for spelled in spellings(value).values():
            data = f"a{spelled[:5]}b {spelled} {spelled[:-1]}".encode()
            masker = stream(Redactor([value]).hidden)
            assert masker is not None
            told = b"".join(masker.feed(data[at : at + piece]) for at in range(0, len(data), piece)) + masker.close()
            assert told.decode() == Redactor([value]).text(data.decode())


@pytest.mark.parametrize("letters", ["ab", "abc\n", "ab+/=", "a\\n\n"])
def test_pieces_are_masked_as_the_whole_is(letters: str) -> None:
    chance = random.Random(letters)

    def some(least: int, most: int) -> str:
        return "".join(chance.choices(letters, k=chance.randint(least, most)))

    for _ in range(300):
        values = [some(4, chance.choice([5, 9, 90])) for _ in range(chance.randint(1, 3))]
        hidden = tuple(sorted({value.encode() for value in values}, key=lambda data: (-len(data), data)))
        text = (some(0, 60) + chance.choice(values) + some(0, 9) + chance.choice(values)[:-1]).encode()
        masker = stream(hidden)
        assert masker is not None
        told, at = b"", 0
        while at < len(text):
            piece = text[at : at + chance.randint(1, 9)]
            told, at = told + masker.feed(piece), at + len(piece)
        assert told + masker.close() == redact._finder(hidden).mask(text.decode()).encode()


def test_only_an_end_that_may_begin_a_value_waits() -> None:
    masker = stream(Redactor(["sesame"]).hidden)
    assert masker is not None
    assert masker.feed(b"open ses") == b"open "
    assert masker.feed(b"sion\n") == b"session\n"
    assert (masker.feed(b"sesame"), masker.feed(b"!"), masker.close()) == (b"***", b"!", b"")


@pytest.mark.parametrize("shift", range(0, 40, 3))
def test_an_output_that_is_too_long_is_not_cut_in_the_middle_of_a_value(shift: int) -> None:
    value, limit = "abcdefghijklmnop", 64
    hidden = Redactor([value]).hidden
    for size in (150, 1000):
        data = (b"." * shift + value.encode() * 2 + b"." * 40 + value.encode() * 3).ljust(
            size, b"-"
        ) + value.encode() * 4
        capture = Capture(limit, hidden=hidden)
        for at in range(0, len(data), 7):
            capture.feed(data[at : at + 7])
        told = Redactor([value]).text(capture.captured().text.replace("bytes left out", ""))
        assert not re.search("[a-p]", told), told


LONG = "ghp_" + "".join(chr(33 + number * 7 % 90) for number in range(150))


@pytest.mark.parametrize("before", [0, 20, 56])
@pytest.mark.parametrize("width", [60, 64, 76])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\\n"])
def test_base64_and_hex_in_lines_are_masked(before: int, width: int, end: str) -> None:
    redactor = Redactor([LONG])
    data = b"#" * before + LONG.encode() + b"#" * 40
    for encoded in (base64.b64encode(data).decode(), data.hex()):
        text = "so:" + end + end.join(encoded[at : at + width] for at in range(0, len(encoded), width)) + end + "after"
        masked = redactor.text(text)
        assert masked.count(MASK) == 1
        assert masked.startswith("so:" + end)
        assert masked.endswith("after")
        unit = (4, 3) if encoded != data.hex() else (2, 1)
        kept = masked.replace(MASK, "").replace("so:", "").replace("after", "").replace(end, "")
        assert len(kept) <= (before + 40) * unit[0] / unit[1] + 8, "no more than what stood around it"
        if end != "\\n":
            for piece in (13, 80):
                masker = stream(redactor.hidden)
                assert masker is not None
                told = [masker.feed(text[at : at + piece].encode()) for at in range(0, len(text), piece)]
                assert (b"".join(told) + masker.close()).decode() == masked
    assert MASK in decode(redactor.json(encode({"a": base64.encodebytes(data).decode()})))["a"]


def test_lines_that_hold_no_value_stay_as_they_are() -> None:
    text = "\n".join(base64.b64encode(bytes(range(n, n + 57))).decode() for n in range(100)) + "\n"
    assert Redactor([LONG]).text(text) == text
    masker = stream(Redactor([LONG]).hidden)
    assert masker is not None
    told = [masker.feed(text[at : at + 100].encode()) for at in range(0, len(text), 100)]
    assert max(len(masker._held), 0) < 2000
    assert (b"".join(told) + masker.close()).decode() == text


def test_a_flood_of_what_overlaps_does_not_pile_up() -> None:
    masker = stream(Redactor(["aaaa"]).hidden)
    assert masker is not None
    told = [masker.feed(b"a" * 100) for _ in range(50)]
    assert b"".join([*told, masker.close()]) == b"***"
    assert len(masker._held) < 4


def test_values_that_overlap_leave_nothing() -> None:
    assert Redactor(["abcdef", "defghi"]).text("-abcdefghi-") == "-***-"
    assert Redactor(["abcdef", "abcdefgh"]).text("abcdefgh abcdefg") == "*** ***g"


@pytest.mark.parametrize("value", ["12345678", "3.14159", "1234"])
def test_a_number_that_is_a_value_becomes_a_text_and_json_stays_json(value: str) -> None:
    told = {"pin": json.loads(value), "among": f"x{value}y", "longer": int(f"9{value.replace('.', '')}9")}
    masked = decode(Redactor([value]).json(encode(told)))
    assert masked == {"pin": MASK, "among": f"x{MASK}y", "longer": told["longer"]}


@pytest.mark.parametrize("value", ["true", "null", "false"])
def test_a_value_that_is_a_word_of_json_does_not_break_it(value: str) -> None:
    told = encode({value: [True, False, None, f"so {value}"]})
    assert decode(Redactor([value]).json(told)) == {MASK: [True, False, None, f"so {MASK}"]}


def test_keys_are_masked_and_none_is_lost() -> None:
    masked = Redactor(["sesame", "barley"]).value({"sesame": 1, "barley": 2, "x barley": {"sesame": "oats"}})
    assert masked == {"***": 1, "*** (2)": 2, "x ***": {"***": "oats"}}


def test_an_error_keeps_what_it_is() -> None:
    error = {
        "type": "exit.3",
        "step": "exit",
        "path": "exit",
        "attempt": 1,
        "message": "exit it",
        "more": {"a": "exit"},
    }
    assert Redactor(["exit"]).error(error) == {**error, "message": "*** it", "more": {"a": MASK}}


def test_text_that_looks_like_the_mask_changes_nothing() -> None:
    redactor = Redactor(["sesame"])
    assert redactor.text("*** ses***ame ******sesame***") == "*** ses***ame *********" + MASK
    assert redactor.text(redactor.text("sesame ***")) == "*** ***"


def test_too_short_a_value_is_not_looked_for() -> None:
    redactor = Redactor(["abc", ""])
    assert not redactor.active
    assert redactor.text("abc") == "abc"
    assert stream(redactor.hidden) is None


@pytest.mark.parametrize("few", [0, redact.FEW])
def test_both_ways_of_looking_find_the_same(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(spelled for value in VALUES for spelled in spellings(value).values())
    expected = Redactor(VALUES).text(text)
    monkeypatch.setattr(redact, "FEW", few)
    assert Redactor(VALUES).text(text) == expected
    assert not any(value in expected for value in VALUES)


def test_many_values_in_a_large_text_take_no_long_time() -> None:
    many = [f"value-{number:06d}-{number * 7919:x}" for number in range(3000)]
    redactor = Redactor(many)
    text = "what stands here is not secret, 123456 times. " * 20_000
    began = time.process_time()
    assert redactor.text(text + many[7]) == text + MASK
    assert time.process_time() - began < 5.0, "one by one it would be minutes"


def test_without_values_a_text_is_given_back_as_it_is() -> None:
    text = "x" * 1000
    assert Redactor().text(text) is text
    assert Redactor().json(text) is text
