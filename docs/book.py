"""Takes files outside of docs/ into the book. Documents link to README.md, ARCHITECTURE.md, bench/RESULTS.md or a header,
which mkdocs does not know. Each such file becomes a page below outside/, README.md the first page, and links lead there."""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File, InclusionLevel

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?\)")
# Lines of code blocks, by a fence or by four blanks, have no links.
FENCE = re.compile(r"^\s*```")
# In a table of a repository's pages code has its bars behind a backslash; mkdocs would show it.
ROW = re.compile(r"^\|.*$", re.MULTILINE)
CODE = re.compile(r"`[^`]*`")


def page_of(path):
    """Name in the book of a file of the repository, None if there is no such file."""
    if path == "README.md":
        return "index.md"
    if path.startswith("docs/"):
        return path[len("docs/") :]
    if path.startswith("..") or not (ROOT / path).is_file():
        return None
    return f"outside/{path}" if path.endswith((".md", ".png")) else f"outside/{path}.md"


def links(text):
    """Links of a document, without those to other sites."""
    fenced = False
    for line in text.splitlines():
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield from (found[2] for found in LINK.finditer(line) if ":" not in found[2])


def turned(text, path):
    """The text of a file of the repository, with links between pages of the book."""
    here = posixpath.dirname(page_of(path))

    def turn(found):
        if ":" in found[2]:
            return found[0]
        page = page_of(posixpath.normpath(posixpath.join(posixpath.dirname(path), found[2])))
        if page is None:
            return found[0]
        return f"{found[1]}{posixpath.relpath(page, here or '.')}{found[3] or ''})"

    text = ROW.sub(lambda row: CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), text)
    return LINK.sub(turn, text)


def content(path):
    """A file of the repository as a page."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return turned(text, path)
    return f"# {path}\n\n```{Path(path).suffix[1:]}\n{text}\n```\n"


def on_files(files, config):
    """Adds the files that documents link to, and those that these link to."""
    waiting = ["README.md"]
    waiting += [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        if not path.startswith("docs/"):
            level = InclusionLevel.INCLUDED if path == "README.md" else InclusionLevel.NOT_IN_NAV
            files.append(File.generated(config, page_of(path), content=content(path), inclusion=level))
        if path.endswith(".md"):
            text = (ROOT / path).read_text(encoding="utf-8")
            ends = (posixpath.normpath(posixpath.join(posixpath.dirname(path), link)) for link in links(text))
            new = {end for end in ends if not end.startswith("docs/") and page_of(end)} - seen
            seen |= new
            waiting += sorted(new)
    return files


def on_page_markdown(markdown, page, config, files):
    """Turns the links of a document of docs/; the others were turned as they were added."""
    generated = page.file.generated_by is not None
    return markdown if generated else turned(markdown, f"docs/{page.file.src_uri}")
