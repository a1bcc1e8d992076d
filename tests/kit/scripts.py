"""Our Lua scripts as they are called over the wire."""

import hashlib
import os

LUA = os.path.join(os.path.dirname(__file__), "..", "..", "sidecar", "store", "redis", "lua")
NAMES = ("acquire", "renew", "release")


def _body(name):
    text = b""
    for part in ("common", name):
        with open(os.path.join(LUA, part + ".lua"), "rb") as f:
            text += f.read()
    return text


def is_script(name):
    """Whether bytes on the wire call that script: by its hash, or with its whole text."""
    body = _body(name)
    sha1 = hashlib.sha1(body).hexdigest().encode()
    return lambda data: sha1 in data or body in data
