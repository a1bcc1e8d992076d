"""Rules of the source that no compiler checks. Run as a script: prints what breaks them.

 1. A file has at most 420 lines, a function at most 60.
 2. Includes go in one direction: each folder may use those named in USES, nothing else of ours;
    only the folders in LIBRARIES may use that library.
 3. Nothing is left for later: no TODO, FIXME, XXX.
 4. Structs have no typedef; every header has its guard, named after its path.
"""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILE_LINES = 420
FUNCTION_LINES = 60

# The path's longest prefix decides. What a folder may include of ours, itself included.
USES = {
    "sidecar/election": {"election"},
    "sidecar/base": {"base", "election", "config/config.h"},
    "sidecar/config": {"config", "base", "election", "store/store.h"},
    "sidecar/store": {"store", "base", "election"},
    "sidecar/publish": {"publish", "base", "election", "config/config.h", "config/duration.h",
                        "clients/c/gavel_page.h"},
    "sidecar/clients": set(),
    "health": {"health", "base", "election", "config/config.h", "publish/board.h",
               "store/store.h"},
}
# Which of our folders may include a library's headers.
LIBRARIES = {
    "uv.h": ("sidecar/app", "sidecar/base", "sidecar/config", "sidecar/store", "sidecar/publish",
             "health"),
    "libpq-fe.h": ("sidecar/store/postgres",),
    "hiredis": ("sidecar/store/redis",),
    "openssl": ("sidecar/store/redis", "sidecar/store/postgres"),
    "microhttpd.h": ("sidecar/base", "sidecar/publish", "health"),
    "jansson.h": ("sidecar/publish", "sidecar/store", "sidecar/base", "sidecar/cli", "health"),
}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)


def sources(root):
    for top in ("sidecar", "health", "tests"):
        for folder, _, files in os.walk(os.path.join(root, top)):
            for name in sorted(files):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def long_functions(text):
    """(first line, lines) of each function: its brace stands alone at the margin, or ends a line
    that starts at the margin."""
    begun = None
    for number, line in enumerate(text.split("\n"), 1):
        if begun is None:
            if re.match(r"[A-Za-z_].*\)\s*\{$", line) or line == "{" or \
                    (line.endswith(") {") and line[:1] in " \t" and line[:8].strip() == ""):
                begun = number
        elif line.startswith("}"):
            if number - begun + 1 > FUNCTION_LINES:
                yield begun, number - begun + 1
            begun = None


def longest_prefix(path, table):
    fits = [p for p in table if path.startswith(p + "/")]
    return max(fits, key=len) if fits else None


def check_includes(path, text):
    place = longest_prefix(path, USES)
    for kind, name in INCLUDE.findall(text):
        if kind == '"' and place and "/" in name:
            allowed = USES[place]
            if name not in allowed and name.split("/")[0] not in allowed:
                yield f"{path}: includes {name}, which {place} may not"
        for library, folders in LIBRARIES.items():
            if kind == "<" and name.startswith(library) and not path.startswith("tests/") \
                    and not any(path.startswith(f) for f in folders):
                yield f"{path}: includes <{name}>, which only {', '.join(folders)} may"


def check_file(path, text):
    lines = text.count("\n")
    if lines > FILE_LINES:
        yield f"{path}: {lines} lines, at most {FILE_LINES}"
    for first, length in long_functions(text):
        yield f"{path}:{first}: a function of {length} lines, at most {FUNCTION_LINES}"
    for number, line in enumerate(text.split("\n"), 1):
        if re.search(r"\b(TODO|FIXME|XXX)\b", line):
            yield f"{path}:{number}: left for later: {line.strip()}"
        if re.match(r"\s*typedef\s+(struct|union)\b", line):
            yield f"{path}:{number}: a struct with a typedef"
    yield from check_includes(path, text)
    if path.endswith(".h") and not path.startswith("tests/"):
        end = re.sub(r"[^A-Z0-9]", "_", path.split("/", 1)[1].upper())
        guard = re.search(r"#ifndef (\w+)\n#define \1\n", text)
        if not guard or not guard.group(1).startswith("GAVEL_") \
                or not guard.group(1).endswith(end):
            yield f"{path}: its guard is not GAVEL_..{end}"


def check_tree(root):
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as f:
            yield from check_file(path, f.read())


if __name__ == "__main__":
    broken = list(check_tree(ROOT))
    print("\n".join(broken) or "all rules hold")
    sys.exit(1 if broken else 0)
