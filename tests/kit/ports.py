"""Free ports below the ephemeral range, so that no outgoing connection takes one in between."""

import os
import random
import socket

_random = random.Random(os.getpid() ^ random.SystemRandom().getrandbits(32))
_given = set()


def _is_free(port):
    for family, host in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as s:
                if family == socket.AF_INET6:
                    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind((host, port))
        except OSError as e:
            if family == socket.AF_INET6 and e.errno in (97, 99):  # no IPv6 here
                continue
            return False
    return True


def free_port():
    while True:
        port = _random.randrange(15000, 32000)
        if port not in _given and _is_free(port):
            _given.add(port)
            return port


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False
