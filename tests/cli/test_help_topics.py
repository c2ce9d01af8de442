"""`tramai help`: topics that are true, the help of commands, and hints for words of other tools."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from click.testing import Result

from tests.cli.conftest import ROOT, document, write
from tests.cli.test_documents import check
from tramai import kinds
from tramai.cli import _other_words, help
from tramai.cli._group import SUMMARIES, group
from tramai.cli._settings import KEYS, OBSERVERS, TABLES
from tramai.error_types import ERROR_TYPES
from tramai.workflow import generate_schema

Call = Callable[..., Result]
TOPICS = sorted(help.topics())


@pytest.mark.parametrize("name", TOPICS)
def test_a_topic_is_shown_without_markup_and_fits_in_eighty_columns(tramai: Call, name: str) -> None:
    result = tramai("help", name)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == help.topics()[name]
    assert "```" not in result.stdout
    assert [line for line in lines if len(line) > 80 and not line.startswith("    ")] == []
    assert [line for line in lines if len(line) > 110] == []


@pytest.mark.parametrize("name", TOPICS)
def test_a_topic_is_one_page_with_an_example(name: str) -> None:
    text = help.read(name)
    assert "```" in text
    assert len(text) < 2000
    assert len(text.splitlines()) <= 42


@pytest.mark.parametrize("name", TOPICS)
def test_no_topic_has_the_name_of_a_command_and_what_it_refers_to_exists(name: str) -> None:
    assert name not in SUMMARIES
    for topic in re.findall(r"`tramai help ([\w-]+)`", help.read(name)):
        assert topic in TOPICS


def test_the_document_of_a_topic_has_its_text_and_all_names(tramai: Call) -> None:
    found = check(document(tramai("help", "replay", "--json")))
    assert (found["kind"], found["name"]) == ("topic", "replay")
    assert found["text"] == help.read("replay")
    assert [one["name"] for one in found["topics"]] == TOPICS
    listed = check(document(tramai("help", "--json")))
    assert (listed["kind"], listed["text"]) == ("list", None)
    assert [one["name"] for one in listed["commands"]] == list(SUMMARIES)


def test_without_a_word_topics_and_commands_are_listed(tramai: Call) -> None:
    text = tramai("help").stdout
    for name in [*TOPICS, *SUMMARIES]:
        assert re.search(rf"^  {name} ", text, re.MULTILINE)


@pytest.mark.parametrize("words", [("run",), ("store",), ("store", "move"), ("config", "show"), ("help",)])
def test_the_help_of_a_command_is_its_help(tramai: Call, words: tuple[str, ...]) -> None:
    assert tramai("help", *words).stdout == tramai(*words, "--help").stdout
    assert check(document(tramai("help", *words, "--json")))["kind"] == "command"


def test_other_words_lead_to_topics(tramai: Call) -> None:
    assert set(help.ALIASES.values()) <= set(TOPICS)
    assert not set(help.ALIASES) & (set(SUMMARIES) | set(TOPICS))
    assert tramai("help", "exit", "codes").stdout == tramai("help", "exit-codes").stdout
    assert tramai("help", "Cron").stdout == tramai("help", "schedules").stdout


def test_a_verb_and_a_code_are_explained_as_their_commands_do(tramai: Call) -> None:
    assert tramai("help", "shell").stdout == tramai("schema", "step", "shell").stdout
    assert tramai("help", "TRM104").stdout == tramai("explain", "TRM104").stdout
    assert tramai("help", "TRM998").exit_code == 4


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("expresions",), "did you mean 'tramai help expressions'?"),
        (("qqqq",), "tramai help lists topics and commands"),
        (("store", "mov"), "did you mean 'tramai help store move'?"),
        (("run", "qqqq"), "tramai help run shows what it has"),
    ],
)
def test_what_is_no_topic_is_4_with_a_hint(tramai: Call, words: tuple[str, ...], hint: str) -> None:
    result = tramai("help", *words)
    assert result.exit_code == 4
    assert hint in result.stderr
    assert document(tramai("help", *words, "--json"))["error"]["code"] == "TRM704"


# What topics list is complete.


def test_the_topic_of_exit_codes_has_those_of_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    table = page[page.index("## Exit codes") : page.index("`validate`: 1 for errors")]
    codes = set(re.findall(r"\d+", " ".join(re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE))))
    told = set(re.findall(r"\d+", " ".join(re.findall(r"^- ([\d, ]+):", help.read("exit-codes"), re.MULTILINE))))
    assert codes == told
    assert len(codes) > 10


def test_the_topic_of_steps_has_every_verb_and_common_key() -> None:
    text = help.read("steps")
    assert [verb for verb in kinds.names("steps") if f"`{verb}`" not in text] == []
    node = generate_schema()["definitions"]["step"]["properties"]
    keys = set(node) - set(kinds.names("steps")) - {"id"}
    assert [key for key in keys if f"`{key}`" not in text] == []


def test_the_topic_of_workflows_has_every_key_at_the_top() -> None:
    text = help.read("workflow")
    assert [key for key in generate_schema()["properties"] if not key.startswith("$") and f"`{key}`" not in text] == []


def test_the_topic_of_stores_has_every_kind_and_that_of_settings_every_key() -> None:
    stores, settings = help.read("stores"), help.read("settings")
    assert [name for name in kinds.names("stores") if f"`{name.replace('postgres', 'postgresql')}:" not in stores] == []
    assert [key for key in (*KEYS, *TABLES, OBSERVERS) if f"`{key}`" not in settings] == []


def test_the_topic_of_failures_has_every_error_type() -> None:
    text = help.read("failures")
    assert [word for word in ERROR_TYPES if f"`{word}" not in text] == []


# Commands that do not exist.


@pytest.mark.parametrize("word", sorted(_other_words.WORDS))
def test_a_word_of_another_tool_gets_the_one_of_ours(tramai: Call, word: str) -> None:
    ours = _other_words.WORDS[word]
    assert word not in SUMMARIES
    result = tramai(word, "x")
    assert result.exit_code == 2
    assert f"here that is 'tramai {ours}'" in result.stderr
    assert tramai(*ours.split(), "--help").exit_code == 0


def test_a_misspelt_command_and_a_file_get_a_hint(tramai: Call) -> None:
    assert "did you mean 'tramai help'?" in tramai("hlep").stderr
    assert "did you mean 'tramai validate'?" in tramai("Valdate").stderr
    assert "did you mean 'tramai run review.yaml'?" in tramai("review.yaml").stderr
    write("Taskfile", "")
    assert "did you mean 'tramai run Taskfile'?" in tramai("Taskfile").stderr
    assert "tramai --help lists the commands" in tramai("qqqq").stderr
    assert document(tramai("ps", "--json"))["error"]["hint"] == "here that is 'tramai list'"


def test_every_command_is_in_the_group() -> None:
    assert group.list_commands(None) == list(SUMMARIES)  # type: ignore[arg-type]
