"""For a sink that can compare no tokens: a mail, a payment, another's API. The effect gets a key that
is made of what it is for, never of who sends it or when; a leader that was paused and its successor
then send the same key, and the sink takes the effect once. (Stripe's Idempotency-Key, SQS's and
JetStream's deduplication ids, a UNIQUE column, a file's name.)

    send(host, port, "/payments", effect_key("salary", "2026-11", employee), body)

The sink has to remember keys for longer than a leader can be paused.
"""

import hashlib
import http.client


def effect_key(*parts):
    """One key for one effect. Parts are told apart: ("a", "bc") is not ("ab", "c")."""
    text = "".join(f"{len(str(p))}:{p}," for p in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def send(host, port, path, key, body, timeout=10.0):
    """True: it took effect now. False: it had already, with this key. Asked again with the same
    key after any error, it is safe."""
    connection = http.client.HTTPConnection(host, port, timeout=timeout)
    try:
        connection.request("POST", path, body, {"Idempotency-Key": key})
        reply = connection.getresponse()
        reply.read()
        if reply.status not in (200, 201):
            raise OSError(f"POST {path}: {reply.status}")
        return reply.status == 201
    finally:
        connection.close()
