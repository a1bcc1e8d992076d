"""A redis-server with TLS."""

from kit.ports import free_port
from kit.redis_server import Redis


class TlsRedis(Redis):
    """Listens with TLS on another port; the tests themselves use the plain one."""

    def __init__(self, folder, authority, certificate, *options):
        self.tls_port = free_port()
        super().__init__(folder, ["--tls-port", str(self.tls_port), "--tls-cert-file",
                                  certificate.certificate, "--tls-key-file", certificate.key,
                                  "--tls-ca-cert-file", authority.file, "--tls-auth-clients", "no",
                                  *options])

    @property
    def url(self):
        return f"rediss://127.0.0.1:{self.tls_port}"

    def show(self, certificate):
        """New connections are shown this one."""
        self.cli("CONFIG", "SET", "tls-cert-file", certificate.certificate, "tls-key-file",
                 certificate.key)

    def hang_up(self):
        for kind in ("normal", "pubsub"):
            self.cli("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
