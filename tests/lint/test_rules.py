"""Each rule finds what breaks it."""

import pytest

from lint.rules import check_file

GUARD = "#ifndef GAVEL_{0}\n#define GAVEL_{0}\n#endif\n"


@pytest.mark.parametrize("path,text,found", [
    ("sidecar/base/a.c", "int x;\n" * 421, "421 lines"),
    ("sidecar/base/a.c", "int f(void) {\n" + "    x();\n" * 60 + "}\n", "function of 62"),
    ("sidecar/base/a.c", "static int f(int a,\n             int b) {\n" + "x();\n" * 60 + "}\n",
     "function of"),
    ("sidecar/base/a.c", "/* TO" + "DO: later */\n", "left for later"),
    ("sidecar/base/a.c", "typedef struct a b;\n", "typedef"),
    ("sidecar/election/a.c", '#include "base/clock.h"\n', "may not"),
    ("sidecar/election/a.c", "#include <uv.h>\n", "only"),
    ("sidecar/store/local/a.c", '#include "publish/board.h"\n', "may not"),
    ("health/a.c", '#include "publish/socket.h"\n', "may not"),
    ("health/health.h", GUARD.format("BASE_HEALTH_X"), "guard"),
])
def test_finds(path, text, found):
    broken = list(check_file(path, text))
    assert len(broken) == 1 and found in broken[0], broken


@pytest.mark.parametrize("path,text", [
    ("sidecar/base/a.c", "int x;\n" * 420),
    ("sidecar/base/a.c", "int f(void) {\n" + "    x();\n" * 58 + "}\n" * 2),
    ("sidecar/election/a.c", '#include "election/view.h"\n#include <string.h>\n'),
    ("sidecar/app.c", '#include "store/store.h"\n#include <uv.h>\n'),
    ("health/a.c", '#include "publish/board.h"\n'),
    ("health/health.h", GUARD.format("HEALTH_HEALTH_H")),
    ("sidecar/base/clock.h", GUARD.format("BASE_CLOCK_H")),
])
def test_leaves_alone(path, text):
    assert list(check_file(path, text)) == []
