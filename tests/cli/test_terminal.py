"""What reaches a terminal: safe text, display width, colour and encodings."""

from __future__ import annotations

import io

import pytest

from tramai.cli._terminal import Terminal, cells, fit, pad, safe, safe_lines


class Tty(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Closed(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_control_characters_are_spelled_out() -> None:
    assert safe("a\x1b[31mred\x07\x00") == "a\\x1b[31mred\\x07\\x00"


def test_c1_controls_and_direction_marks_are_spelled_out() -> None:
    assert safe("\x9b31m \u202eevil\u2066") == "\\x9b31m \\u202eevil\\u2066"


def test_half_characters_can_always_be_written() -> None:
    assert safe("\ud800x").encode("utf-8") == b"\\ud800x"


def test_markup_is_left_as_the_text_it_is() -> None:
    assert safe("[bold]x[/bold] <b>") == "[bold]x[/bold] <b>"


@pytest.mark.parametrize("text", ["::error::x", "  ::set-output name=a::b", "##[error]x"])
def test_workflow_commands_of_a_ci_are_broken(text: str) -> None:
    shown = safe(text)
    assert not shown.lstrip().startswith("::")
    assert "##[" not in shown


def test_carriage_returns_end_lines_instead_of_overwriting_them() -> None:
    assert safe_lines("one\r\ntwo\rthree") == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("日本語", 6), ("nai\u0308ve", 5), ("🚀", 2), ("", 0), ("a\u200db", 2)]
)
def test_width_counts_cells(text: str, width: int) -> None:
    assert cells(text) == width


def test_long_names_are_cut_with_an_ellipsis_by_cells() -> None:
    assert fit("日本語日本語", 7) == "日本語…"
    assert cells(fit("x" * 200, 10)) == 10
    assert fit("short", 10) == "short"


def test_padding_lines_up_wide_text() -> None:
    assert cells(pad("日本語", 10)) == cells(pad("abc", 10)) == 10


def test_a_pipe_gets_no_colour() -> None:
    terminal = Terminal(io.StringIO(), env={"TERM": "xterm"})
    assert terminal.paint("x", "red") == "x"
    assert not terminal.lively


def test_a_terminal_gets_colour() -> None:
    assert "\x1b[31m" in Terminal(Tty(), env={"TERM": "xterm"}).paint("x", "red")


def test_no_color_takes_the_colour_but_not_the_liveness() -> None:
    terminal = Terminal(Tty(), env={"TERM": "xterm", "NO_COLOR": "1"})
    assert terminal.paint("x", "red") == "x"
    assert terminal.lively


def test_a_dumb_terminal_gets_no_escape_at_all() -> None:
    terminal = Terminal(Tty(), env={"TERM": "dumb"})
    assert terminal.paint("x", "red") == "x"
    assert not terminal.lively


def test_force_color_colours_a_pipe_but_makes_nothing_live() -> None:
    terminal = Terminal(io.StringIO(), env={"FORCE_COLOR": "1"})
    assert "\x1b" in terminal.paint("x", "red")
    assert not terminal.lively


def test_the_older_switches_for_colour_are_obeyed_too() -> None:
    assert "\x1b" in Terminal(io.StringIO(), env={"CLICOLOR_FORCE": "1"}).paint("x", "red")
    assert Terminal(io.StringIO(), env={"CLICOLOR_FORCE": "0"}).paint("x", "red") == "x"
    assert Terminal(io.StringIO(), env={"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}).paint("x", "red") == "x"
    assert Terminal(Tty(), env={"TERM": "xterm", "CLICOLOR": "0"}).paint("x", "red") == "x"


def test_a_ci_is_never_live() -> None:
    assert not Terminal(Tty(), env={"TERM": "xterm", "CI": "true"}).lively


def test_the_flag_wins_over_the_environment() -> None:
    assert "\x1b" in Terminal(Tty(), colour="always", env={"NO_COLOR": "1"}).paint("x", "red")
    assert Terminal(Tty(), colour="never", env={"FORCE_COLOR": "1"}).paint("x", "red") == "x"


def test_an_ascii_stream_never_refuses_a_character() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    terminal = Terminal(stream, env={})
    terminal.line("日本 ok")
    assert raw.getvalue() == b"\\u65e5\\u672c ok\n"
    assert not terminal.unicode


def test_a_reader_that_has_gone_is_no_error() -> None:
    terminal = Terminal(Closed(), env={})
    terminal.line("x")
    terminal.line("y")
    assert terminal.broken
