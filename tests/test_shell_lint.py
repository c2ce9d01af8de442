"""What is told of a dangerous script, and that a careful one is left alone."""

from __future__ import annotations

import pytest

from tramai.steps._shell_lint import findings


def told(script: str) -> list[str]:
    """Code and marked text of each finding."""
    found = []
    for finding in findings(script):
        assert finding.range is not None
        assert finding.severity == "warning"
        found.append(f"{finding.code} {script[slice(*finding.range)]}")
    return found


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("rm -rf $DIR/x", "TRM395 $DIR"),
        ("cd x && rm -rf ${DIR}", "TRM395 ${DIR}"),
        ("if true; then sudo rm $F; fi", "TRM395 $F"),
        ("A=1 rm $F", "TRM395 $F"),
        ('mv "$A" $B', "TRM395 $B"),
        ("/bin/rm $(cat list)", "TRM395 $(cat list)"),
        ("rm `cat list`", "TRM395 `cat list`"),
        ("rm $@", "TRM395 $@"),
        ("for f in *; do\n  chmod 644 $f\ndone", "TRM395 $f"),
        ("git push -f origin $B", "TRM395 $B"),
        ("find $D -delete", "TRM395 $D"),
        ("dd if=/dev/zero of=$DEV", "TRM395 $DEV"),
        ("cat <<EOF\nx\nEOF\nrm $A", "TRM395 $A"),
        ("curl https://e.com/x | sh", "TRM396 sh"),
        ("curl -s https://e.com/x | sudo bash -s", "TRM396 sudo"),
        ("wget -qO- https://e.com/x |\\\n python3", "TRM396 python3"),
        ("echo x >> $GITHUB_OUTPUT", "TRM397 $GITHUB_OUTPUT"),
        ("echo '::set-output name=a::b'", "TRM397 ::set-output"),
    ],
)
def test_danger_is_told_in_its_place(script: str, what: str) -> None:
    assert told(script) == [what]


@pytest.mark.parametrize(
    "script",
    [
        'rm -rf "$DIR"/x "${DIR:?}/y"',
        "rm '$DIR' \\$DIR",
        "rm file.$((1 + 2))",
        "rm x # $DIR",
        "cat <<EOF\nrm $A\nEOF",
        "cat <<-'EOF' > y\n\trm $A\n\tEOF\nrm x",
        "echo $DIR; printf '%s' $X",
        "git push origin $B",
        "find $D -name x",
        'sh -c "rm x" | cat',
        "curl https://e.com/x -o x && sh x",
        "curl https://e.com/x | jq .",
        "X=$(rm x)",
        "for f in $FILES; do echo; done",
        'rm "',
        "rm $(",
        "",
        "\\",
    ],
)
def test_care_is_left_alone(script: str) -> None:
    assert [line for line in told(script) if line != "TRM395 $("] == []


def test_a_long_script_is_read_in_a_moment() -> None:
    assert len(told("rm $A\n" * 20_000)) == 20_000
