"""The table in sidecar/README.md is that of sidecar/election/states.c."""

import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def read(path):
    with open(os.path.join(ROOT, path)) as f:
        return f.read()


source = re.sub(r'"\s*\n\s*"', "", read("sidecar/election/states.c"))
in_code = [(a.lower(), b.lower(), c) for a, b, c in
           re.findall(r'\{STATE_(\w+), STATE_(\w+),\s*"([^"]+)"\}', source)]
table = read("sidecar/README.md").split("| from | to | when |", 1)[1]
in_text = re.findall(r"^\| (\w+) \| (\w+) \| (.+) \|$", table, re.MULTILINE)
if not in_code or in_code != in_text:
    print("only in the code:", [r for r in in_code if r not in in_text])
    print("only in the README:", [r for r in in_text if r not in in_code])
    sys.exit(1)
print(len(in_code), "changes of state")
