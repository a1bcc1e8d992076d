#!/usr/bin/env python3
"""Runs the tests of a build with counters, and says what they cover: branches of the core, lines of
everything else.

    cmake --preset coverage && cmake --build --preset coverage
    tests/coverage.py [--build build/coverage] [--all] [--missed] [-- CTEST OPTIONS]

Without options for ctest the tests of units, stores and contract and the simulators run; --all
adds the end-to-end tests and those of the client for C. The simulators' copy of the core counts too,
but for the lines where a fault can be planted. What was built and never ran counts with all its
lines. Status 1: a test failed, the core's branches are below 95 %, or with --all the lines of the
rest below 85 %.
"""
import argparse
import collections
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORE = 'sidecar/election/'
CORE_BRANCHES, OTHER_LINES = 95.0, 85.0
LABELS = 'unit|store|sim|contract'
LABELS_ALL = LABELS + '|e2e|clients'


def read(path, folder):
    """What gcov says of one object's sources."""
    subprocess.run(['gcov', '--json-format', '--branch-probabilities', '--object-directory',
                    str(path.parent), str(path)], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for found in pathlib.Path(folder).glob('*.gcov.json.gz'):
        with gzip.open(found) as f:
            yield from json.load(f)['files']
        found.unlink()


def source_of(name):
    path = pathlib.Path(name)
    path = path if path.is_absolute() else ROOT / path
    try:
        return str(path.resolve().relative_to(ROOT))
    except ValueError:
        return None


def planted(source, known={}):
    """The lines of a source where a fault can be planted."""
    if source not in known:
        text = (ROOT / source).read_text().splitlines()
        known[source] = {i for i, line in enumerate(text, 1) if 'MUTANT(' in line}
    return known[source]


def gather(build):
    """{source: {line: executed}}, {source: {(line, number): taken}}; the most of all objects."""
    lines = collections.defaultdict(lambda: collections.defaultdict(int))
    branches = collections.defaultdict(lambda: collections.defaultdict(int))
    with tempfile.TemporaryDirectory() as folder:
        # Of each object, whether it ever ran or not; some tests bring a source with them.
        for path in sorted(build.rglob('*.gcno')):
            for file in read(path, folder):
                source = source_of(file['file'])
                if source is None or not source.startswith(('sidecar/', 'health/')):
                    continue
                skipped = planted(source) if 'mutants' in str(path) else ()
                for line in file['lines']:
                    number = line['line_number']
                    if number in skipped:
                        continue
                    lines[source][number] = max(lines[source][number], line['count'])
                    for i, branch in enumerate(b for b in line['branches'] if not b['throw']):
                        key = (number, i)
                        branches[source][key] = max(branches[source][key], branch['count'])
    return lines, branches


def percent(counted):
    counts = list(counted)
    return 100.0 * sum(1 for c in counts if c > 0) / len(counts) if counts else 100.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', type=pathlib.Path, default=ROOT / 'build' / 'coverage')
    parser.add_argument('--all', action='store_true', help='the end-to-end tests too')
    parser.add_argument('--missed', action='store_true', help="the core's branches not taken")
    parser.add_argument('--no-run', action='store_true', help='only what was counted before')
    parser.add_argument('ctest', nargs='*')
    options = parser.parse_args()
    build = options.build.resolve()
    if not any(build.rglob('*.gcno')):
        sys.exit(f'{build} is no build with counters: cmake --preset coverage')
    good = True
    if not options.no_run:
        for path in build.rglob('*.gcda'):
            path.unlink()
        tests = options.ctest or ['-L', LABELS_ALL if options.all else LABELS, '-j', '2']
        good = subprocess.run(['ctest', '--test-dir', str(build), '--output-on-failure',
                               '--no-tests=error', *tests], check=False).returncode == 0
    lines, branches = gather(build)
    core = [c for s in branches if s.startswith(CORE) for c in branches[s].values()]
    other = [c for s in lines if not s.startswith(CORE) for c in lines[s].values()]
    for source in sorted(lines):
        print(f'{source:44} lines {percent(lines[source].values()):5.1f} %  '
              f'branches {percent(branches[source].values()):5.1f} %')
        for (line, number), count in sorted(branches[source].items()):
            if options.missed and source.startswith(CORE) and count == 0:
                print(f'    {source}:{line}: branch {number} is never taken')
    print(f'core: {percent(core):.1f} % of {len(core)} branches; '
          f'all else: {percent(other):.1f} % of {len(other)} lines')
    if not good:
        print('tests failed')
    good = good and percent(core) >= CORE_BRANCHES
    good = good and (percent(other) >= OTHER_LINES or not options.all)
    sys.exit(0 if good else 1)


if __name__ == '__main__':
    main()
