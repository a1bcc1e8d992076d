"""What a Redis server is told, command by command, as MONITOR shows it."""

import re
import socket
import threading

from kit.clock import wait_until

# 1700000000.123456 [2 127.0.0.1:4711] "EVALSHA" "..."; `lua` for the address inside a script.
LINE = re.compile(r'\+[\d.]+ \[(\d+) (\S+)\] "(\w+)"(.*)')


class Command:
    def __init__(self, database, client, name, rest):
        self.database = int(database)
        self.in_script = client == "lua"
        self.name = name.upper()
        self.rest = rest

    def __repr__(self):
        return f"[{self.database}{' lua' if self.in_script else ''}] {self.name}{self.rest[:150]}"


class Monitor:
    def __init__(self, redis):
        self.commands = []
        self._redis = redis
        self._marks = 0
        self._socket = socket.create_connection(("127.0.0.1", redis.port))
        self._socket.sendall(b"*1\r\n$7\r\nMONITOR\r\n")
        self._file = self._socket.makefile("rb")
        assert self._file.readline() == b"+OK\r\n"
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        try:
            for raw in self._file:
                match = LINE.match(raw.decode("utf-8", "replace"))
                if match:
                    self.commands.append(Command(*match.groups()))
        except OSError:
            pass

    def scripts(self, *parts):
        """The calls of scripts that have all those texts in them."""
        return [c for c in list(self.commands) if c.name in ("EVAL", "EVALSHA")
                and all(p in c.rest for p in parts)]

    def inside(self, call):
        """What that call of a script did, to its end."""
        self.catch_up()
        commands = list(self.commands)
        done = []
        for command in commands[commands.index(call) + 1:]:
            if not command.in_script:
                break
            done.append(command)
        return done

    def catch_up(self):
        """Until all is there that the server was told before this."""
        self._marks += 1
        mark = f"mark-{self._marks}-"
        self._redis.cli("ECHO", mark)
        wait_until(lambda: any(mark in c.rest for c in self.commands[-200:]), 5, "the mark")

    def wait_script(self, *parts, after=0, timeout=10):
        """The first such call that comes after so many."""
        return wait_until(lambda: self.scripts(*parts)[after:], timeout,
                          f"a script with {parts}")[0]

    def close(self):
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._thread.join(5)
        self._socket.close()
