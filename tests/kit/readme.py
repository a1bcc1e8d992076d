"""The marked blocks of the README, so that tests run what stands there."""

import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
README = os.path.join(ROOT, "README.md")


def _text():
    with open(README, encoding="utf-8") as f:
        return f.read()


def commands():
    """(mark, text) of every block of shell commands."""
    text = _text()
    found = re.findall(r"(?:<!-- test: (\w+) -->\n)?```sh\n(.*?)```", text, re.DOTALL)
    assert found and len(re.findall("^```sh", text, re.MULTILINE)) == len(found)
    return found


def sql(mark):
    """The statement of the block of SQL with that mark."""
    found = re.findall(rf"<!-- sql: {mark} -->\n```sql\n(.*?)```", _text(), re.DOTALL)
    assert len(found) == 1, mark
    return found[0]
