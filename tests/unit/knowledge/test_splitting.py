"""Splitting: no word is lost, and no code block or table below the size limit is cut, in any language."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.search.splitting import Chunk, Format, markdown, split
from shared.search.splitting.sizes import LIMIT, cut, size

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = sorted(
    file for pattern in ("*.md", "docs/*.md", "shared/**/*.py", "template.yaml") for file in ROOT.glob(pattern)
)
WORD = re.compile(r"\w+")

words = st.text("abc xyzđếổ汉字語한 .,;:!?`*_#>|-[]()", min_size=1, max_size=120)
inline = words.map(lambda text: " ".join(text.split()) or "x")
code_lines = st.lists(st.text("abc def(x): = 汉|#-`", max_size=60).map(str.rstrip), max_size=40)


@st.composite
def fences(draw: st.DrawFn) -> str:
    body = [line for line in draw(code_lines) if "~~~" not in line]
    return "\n".join(["~~~python", *body, "~~~"])


@st.composite
def tables(draw: st.DrawFn) -> str:
    columns = draw(st.integers(1, 4))
    cell = st.text("abc ế汉1", min_size=1, max_size=12).map(lambda text: text.strip() or "x")
    row = st.lists(cell, min_size=columns, max_size=columns).map(lambda cells: f"| {' | '.join(cells)} |")
    rows = draw(st.lists(row, min_size=1, max_size=30))
    return "\n".join([draw(row), "|" + "---|" * columns, *rows])


headings = st.builds(lambda level, text: f"{'#' * level} {text}", st.integers(1, 6), inline)
lists = st.lists(inline, min_size=1, max_size=8).map(lambda items: "\n".join(f"- {item}" for item in items))
anything = st.one_of(headings, inline, fences(), tables(), lists, inline.map(lambda text: f"> {text}"))


def visible(text: str) -> str:
    return "".join(text.split())


def lost(source: str, chunks: list[Chunk]) -> Counter[str]:
    return Counter(WORD.findall(source)) - Counter(word for chunk in chunks for word in WORD.findall(chunk.text))


@settings(max_examples=60, deadline=None)
@given(st.lists(anything, max_size=12).map("\n\n".join))
def test_markdown_loses_no_word_and_keeps_to_the_limit(text: str) -> None:
    chunks = split("x.md", text).chunks
    assert not lost(text, chunks)
    assert all(size(chunk.text) <= LIMIT for chunk in chunks)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(fences(), tables()), min_size=1, max_size=5), inline, st.sampled_from(["", "> ", "  "]))
def test_fences_and_tables_below_the_limit_are_not_split(blocks: list[str], prose: str, indent: str) -> None:
    filler = "word " * 300
    shown = ["\n".join(indent + line for line in block.split("\n")) for block in blocks]
    chunks = split("x.md", f"# H\n\n{filler}\n\n" + f"\n\n{prose.replace('|', '')} z\n\n".join(shown)).chunks
    for block in shown:
        if size(block) <= LIMIT:
            assert any(visible(block) in visible(chunk.text) for chunk in chunks), block


@pytest.mark.parametrize(("first", "others"), [("> ", "> "), ("- ", "  "), ("1. ", "   "), ("> 1. ", ">    ")])
def test_nested_fence_is_not_split(first: str, others: str) -> None:
    filler = "word " * 150
    fence = ["~~~python", *(line for number in range(25) for line in (f"value_{number} = {number}", "")), "~~~"]
    inside = [filler, "", *fence, "", filler]
    text = "\n".join([first + inside[0], *(others + line for line in inside[1:])])
    assert size(text) > LIMIT
    chunks = split("x.md", text).chunks
    assert not lost(text, chunks)
    whole = visible("\n".join(others + line for line in fence))
    assert any(whole in visible(chunk.text) for chunk in chunks)


def test_leading_horizontal_rule_is_not_front_matter() -> None:
    slides = split("slides.md", "---\n# Slide one\nFerns.\n\n---\n\n# Slide two\nMoss.\n")
    assert slides.title == "Slide one"
    assert [chunk.heading_path for chunk in slides.chunks if "Ferns" in chunk.text] == [("Slide one",)]


def test_unterminated_front_matter_and_fence_lose_nothing() -> None:
    code = "\n".join(f"value_{number} = {number}" for number in range(200))
    text = f"---\ntitle: Notes\nauthor: Nguyễn Văn A\n---\n\n# H\n\n```python\n{code}\nthe_last = 1"
    assert not lost(text, split("x.md", text).chunks)


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=3000), st.sampled_from(["markdown", "code", "text", "pages"]))
def test_any_text_can_be_split(text: str, read_as: Format) -> None:
    chunks = split("x", text, read_as=read_as).chunks
    assert not lost(text.replace("\0", "\ufffd").removeprefix("\ufeff"), chunks)
    assert all(chunk.text.strip() for chunk in chunks)


@settings(max_examples=40, deadline=None)
@given(st.one_of(st.text(max_size=2000), st.lists(inline, max_size=40).map("\n".join)), st.integers(5, 400))
def test_split_loses_nothing(text: str, limit: int) -> None:
    pieces = cut(text, limit)
    assert "".join(pieces) == text
    assert all(size(piece) <= limit for piece in pieces)


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_split_project_documentation(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    chunks = split(file.name, text).chunks
    assert not lost(text, chunks)
    assert all(size(chunk.text) <= LIMIT for chunk in chunks)
    for fence in re.findall(r"^```.*?^```$", text, re.DOTALL | re.MULTILINE) if file.suffix == ".md" else ():
        assert size(fence) > LIMIT or any(fence in chunk.text for chunk in chunks)


def test_chunks_have_heading_paths() -> None:
    text = (
        "---\ntitle: 'Cài đặt'\n---\nintro\n\n# A\n\n## B *c* `d`\n\ntext\n\nE\n=\n\nmore\n\n```\n# no heading\n```\n"
    )
    chunks = split("x.md", text)
    assert chunks.title == "Cài đặt"
    assert [chunk.heading_path for chunk in chunks.chunks] == [(), ("A", "B c d"), ("E",)]
    assert chunks.chunks[1].text == "# A\n\n## B *c* `d`\n\ntext"


def test_split_table_repeats_header_and_split_fence_its_markers() -> None:
    table = "| name | value |\n|---|---|\n" + "".join(f"| row{n} | {n} |\n" for n in range(200))
    fence = "```python\n" + "".join(f"value_{n} = {n}\n" for n in range(200)) + "```\n"
    chunks = split("x.md", f"# T\n\n{table}\n\n# F\n\n{fence}").chunks
    assert {chunk.content_type for chunk in chunks} == {"table", "code_block"}
    assert all("| name | value |\n|---|---|\n" in chunk.text for chunk in chunks if chunk.content_type == "table")
    fences = [chunk.text for chunk in chunks if chunk.content_type == "code_block"]
    assert all(text.count("```") == 2 for text in fences)
    assert not lost(table + fence, chunks)


@pytest.mark.parametrize(("columns", "rows"), [(2, 3000), (3000, 2), (80, 80)])
def test_table_is_one_node_however_many_cells_it_has(columns: int, rows: int) -> None:
    row = "|" + "a|" * columns + "\n"
    table = f"{row}|{'-|' * columns}\n{row * rows}"
    assert len(markdown._block_parser().parse(f"{table}\nprose")) == 2 + 3
    chunks = split("x.md", f"{table}\nprose").chunks
    assert not lost(table, chunks)
    assert sum(len(chunk.text) for chunk in chunks) < 2 * len(table)


@pytest.mark.parametrize("head", ["| a" + " " * 4000 + "| b |\n|---|---|\n", "```python" + " " * 4000 + "\n"])
def test_blanks_of_a_header_are_not_repeated(head: str) -> None:
    text = head + "| x | y |\n" * 2000
    chunks = split("x.md", text).chunks
    assert sum(len(chunk.text) for chunk in chunks) < 2 * len(text)


def test_html_text_equals_the_rendered_text() -> None:
    page = (
        "<html><head><title>T&agrave;i liệu</title><style>.hidden{}</style></head><body><script>hidden()</script>"
        "<h1>A <b>b</b></h1><p>para <a href=x>link</a>ed<h2>S</h2><pre>if x:\n    y</pre>"
        "<h2>Tab</h2><table><tr><th>k<th>v<tr><td>1|2<td>3</table><ul><li>one<li>two</ul></body></html>"
    )
    chunks = split("x.html", page)
    assert chunks.title == "Tài liệu"
    assert [(chunk.heading_path, chunk.content_type) for chunk in chunks.chunks] == [
        (("A b",), "prose"),
        (("A b", "S"), "code_block"),
        (("A b", "Tab"), "table"),
    ]
    text = "\n".join(chunk.text for chunk in chunks.chunks)
    assert "hidden" not in text
    assert "para linked" in text
    assert "if x:\n    y" in text
    assert "| k | v |\n|---|---|\n| 1\\|2 | 3 |" in text


def html_chunks(page: str) -> list[tuple[tuple[str, ...], str]]:
    return [(chunk.heading_path, chunk.text) for chunk in split("x.html", page).chunks]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>a<!-- hidden > --><!-->b<!x>c<?y?>d</ z>e<![CDATA[hidden]]>f", "abcdef"),
        ("1 < 2 && a<b>c</b> &lt;tag&gt; &eacute; &#x41; &#xffffffffff;!", "1 < 2 && ac <tag> é A \ufffd!"),
        ("a&#" + "9" * 5000 + ";b", "a\ufffdb"),
        ("<p don't title='a>b' x=\"c>d\" y=e'f>one<p>two", "one\n\ntwo"),
        ("<SCRIPT>if (a < b) '</p>'</script >one<style>x{}</style\n>two", "onetwo"),
        ("one<script>never ends", "one"),
        ("one<p two", "one"),
        ("a<svg><title>no</title><svg/><svg></svg><path/></svg>b<object>no<object></object>no</object>c", "abc"),
        ("<noscript>no</noscript><template><p>no</template><iframe>no</iframe>yes", "yes"),
        ("<img src=a.png alt='a cat'><img data-alt=no alt=dog><img>", "a cat dog"),
        ("<textarea>a <b> &amp;</textarea><xmp>a <b> &amp;</xmp>", "a <b> &\n\na <b> &amp;"),
        ("<pre>\n  a <b>b</b><br>  c &lt;</pre>", "```\n  a b\n  c <\n```"),
        ("<pre>never <b>ends", "```\nnever ends\n```"),
        ("<ul><li>one<li><p>two</ul>", "- one\n\n- \n\ntwo".replace("- \n\n", "")),
        (
            "<table><caption>Plan</caption><td>a<b>b</b><td><h4>c</h4><tr><th>d|</table>",
            "Plan\n\n| ab | c |\n|---|---|\n| d\\| |",
        ),
        ("<table><tr><td>a<td><table><tr><td>b</table></table>", "a\n\n| b |\n|---|"),
        ("<table><tr><td>a<td>b", "a\n\nb"),
    ],
)
def test_html_is_read_as_browsers_show_it(page: str, text: str) -> None:
    assert "\n\n".join(text for _, text in html_chunks(page)) == text


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("<nav>Home | Shop</nav><p>Text<footer>(c)</footer>", ["Text"]),
        (
            "<header><h1>Site</h1><nav>x</nav></header><main><header><h1>Page</h1></header>body<nav>toc</nav>more"
            "<aside>a remark</aside></main><aside>news</aside><footer>f</footer>",
            ["# Page\n\nbody\n\nmore\n\na remark"],
        ),
        ("<article><header>A</header>one</article><div>between</div><article>two</article>", ["A\n\none\n\ntwo"]),
        ("<section><header><h2>H</h2></header>x</section>", ["## H\n\nx"]),
        ("<NAV><Nav>a</nav>b</NAV>c", ["c"]),
        ("a<nav>n</nav>b", ["a\n\nb"]),
        ("<main>a<table><tr><td>1</td></tr></table></main><nav><table></nav>", ["a\n\n| 1 |\n|---|"]),
        # Without an end, an element surrounds nothing.
        ("<nav>never closed<p>all", ["never closed\n\nall"]),
        ("<article>1<article>2</article>", ["1\n\n2"]),
        ("</nav>x<nav>y</nav>z", ["x\n\nz"]),
        # Where nothing else is, it is the content.
        ("<nav>only</nav>", ["only"]),
        ("<main></main><p>outside", ["outside"]),
        ("<nav></nav>" * 10_001 + "<nav>a</nav>b", ["a\n\nb"]),
    ],
)
def test_html_is_read_without_navigation_header_and_footer(page: str, texts: list[str]) -> None:
    """The main part or the articles are read if there are some, else the page without what surrounds its content."""
    assert [text for _, text in html_chunks(page)] == texts


def test_html_headings_are_the_path() -> None:
    page = "<title>T<b></title><h1>A<p>b</h1>one<h3><div>C</div></h2>two<h2>D<pre>x</pre><table><tr><td><h3>E</h3>f"
    assert split("x.html", page).title == "T<b>"
    assert [path for path, _ in html_chunks(page)] == [("A b",), ("A b", "C"), ("A b", "D"), ("A b", "D", "E")]


def test_html_of_any_depth_and_size_is_read() -> None:
    for page in (
        "<div>" * 100_000 + "deep",
        "<div>" * 100_000 + "deep" + "</div>" * 100_000,
        "<p>" + "".join(f"<b id={number}>" for number in range(10_000)) + "</p>" + "<p>x" * 10_000,
        "<p " + " ".join(f"a{number}" for number in range(100_000)) + ">deep",
    ):
        assert sum(len(text) for _, text in html_chunks(page)) < len(page)


@pytest.mark.parametrize("name", ["x.md", "x.html", "x.py"])
def test_very_long_headings_are_not_repeated_whole(name: str) -> None:
    """A heading of a million characters is in the text, and cut in the title and in the path of each passage."""
    long = "long " * 200_000
    page = {"x.md": f"# {long}\n", "x.html": f"<h1>{long}</h1>", "x.py": f"def {long}\n"}[name] + "word " * 20_000
    parts = split(name, page)
    assert len(parts.title) <= 300
    assert parts.chunks
    assert all(len(each) <= 300 for chunk in parts.chunks for each in chunk.heading_path)
    assert any(chunk.heading_path for chunk in parts.chunks)


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("title: Plan", "Plan"),
        ('title:   "Plan A"  ', "Plan A"),
        ("a: b\ntitle:Plan", "Plan"),
        ("title:\ntitle: second", "second"),
        ("title: a: b  c\t", "a: b  c"),
    ],
)
def test_title_of_front_matter(line: str, title: str) -> None:
    assert split("x.md", f"---\n{line}\ntags: x\n---\ntext").title == title


def test_pages_and_definitions_are_headings() -> None:
    pages = split("x.pdf", "một\f二\f three").chunks
    assert [(chunk.heading_path, chunk.text) for chunk in pages] == [
        (("Page 1",), "một"),
        (("Page 2",), "二"),
        (("Page 3",), " three"),
    ]
    source = "import os\n\n\ndef first(x):\n    return 1\n" + "\n    # more\n" * 150 + "\n\nclass Second:\n    pass\n"
    assert ("class Second",) in [chunk.heading_path for chunk in split("x.py", source).chunks]


@pytest.mark.parametrize(
    "hostile",
    ["> " * 5000 + "x", "- " * 5000 + "x", "[" * 50_000, "x" * 300_000, "汉" * 100_000, "# " + "*a " * 20_000],
    ids=["quotes", "lists", "brackets", "one word", "one sentence", "one heading"],
)
def test_hostile_markdown_is_split(hostile: str) -> None:
    chunks = split("x.md", hostile).chunks
    assert visible("".join(chunk.text for chunk in chunks)) == visible(hostile)
    assert all(size(chunk.text) <= LIMIT for chunk in chunks)
