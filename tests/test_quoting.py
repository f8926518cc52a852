"""Text from outside: shown as it was written, and obeyed by nothing, whatever it says."""

import html
import re
import string
from io import StringIO

import pypandoc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from odd_names import ODD

from analysis import paths
from analysis.quoting import MOST, as_data, as_markdown, as_written, quoted
from analysis.report import publish
from runners.terminal import PrintableStream, printable

HONEST = [*ODD, "a -- b", "https://x.y//z"]
SEQUENCES = [
    "\x1b]0;title\x07",
    "\x1b]52;c;aGk=\x1b\\",
    "\x1b[31m",
    "\x1b[2J",
    "\x9b2J",
    "\x1bc",
    "\x1b(0",
    "\r",
    "\x00",
    "\x08",
    "\u202e",
]
letters = st.text(
    st.sampled_from([*string.punctuation, *"aZ9 \t\n\x00\x1b\x7f\u202e\ud800é…"]) | st.characters()
)


@given(letters)
@example("".join(HONEST))
def test_what_is_quoted_means_nothing_and_can_be_had_back(text):
    """No letter of it is punctuation; it is as long as what was written, on one line."""
    once = quoted(text)
    assert not set(once) & set(string.punctuation) and quoted(once) == once
    shown = " ".join(printable(" ".join(text.split())).split())
    if not re.search("[\ue000-\uf8ff]", text) and len(shown) <= MOST:
        assert as_written(once) == shown and len(once) == len(shown)
    assert as_data({"a": [once, 1, None]}) == {"a": [as_written(once), 1, None]}


@given(letters)
def test_what_is_printed_is_text(text):
    """Neither a control but the end of a line and a tab, nor half a letter, nor what turns the
    writing around.
    """
    said = printable(text)
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", said
    )
    assert printable(said) == said
    said.encode()


def test_sequences_go_as_a_whole():
    assert printable("a" + "b".join(SEQUENCES[:5]) + "c") == "abbbbc"
    assert printable("".join(SEQUENCES)) == "c"  # of ESC c, which resets a terminal
    assert printable("\x1b]0;not closed, and kept\n") == "]0;not closed, and kept\n"
    assert printable("\x1b]" * 100_000).count("]") == 100_000  # at once


@pytest.mark.few(5)
@pytest.mark.parametrize("name", HONEST)
def test_an_honest_name_is_shown_as_it_is_written(name, tmp_path):
    """In words, in bold, before an apostrophe, in code and in a table; on the page, in the PDF's
    source and in a notebook.
    """
    it = quoted(name)
    text = f"{it} begins. On **{it} it** is {it}'s, `{it}`.\n\n| a |\n| :-- |\n| {it} |"
    page = publish.to_html(text, {"title": "t"}, tmp_path).split("<body>")[1].split("<dialog")[0]
    assert html.unescape(re.sub("<[^>]+>", "", page)).count(name) == 5
    assert "<strong>" in page and page.count("<code>") == 1
    source = publish.to_typst(text, {"title": "t"}, tmp_path)
    in_string = '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
    words = in_string.split(" ")
    assert all(source.count(word.strip('"')) >= 4 for word in words)
    shown = pypandoc.convert_text(
        as_markdown(f"On {it} it is."), "plain", "commonmark", extra_args=["--wrap=none"]
    )
    assert shown.strip() == f"On {name} it is."


def test_a_name_in_code_has_no_backslash():
    """As in a table's caption in a notebook; what could end the code or become a link stays
    escaped.
    """
    for name, shown in {
        "hpl_scaling": "hpl_scaling",
        "my-prog.x": "my-prog.x",
        "a`b": r"a\`b",
    }.items():
        assert as_markdown(f"On `{quoted(name)}` and `b_c`: {quoted('d_e')}.") == (
            rf"On `{shown}` and `b_c`: d\_e."
        )


def test_a_stream_shows_text():
    """Codes of a terminal do not arrive, and what is quoted is shown as it was written."""
    stream = StringIO()
    print("a\x1b[31mb", quoted("*c*"), file=PrintableStream(stream, as_written))
    assert stream.getvalue() == "ab *c*\n"


def test_notebooks_show_text_as_answers():
    """IPython's own Markdown would show what is quoted in letters that nobody reads."""
    for file in paths.NOTEBOOKS.glob("*.ipynb"):
        assert not re.search(r"import .*\b(Markdown|HTML)\b", file.read_text()), file.name
