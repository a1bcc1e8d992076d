"""Certificates of our own, made with the openssl command."""

import os
import subprocess


class Certificate:
    def __init__(self, folder, name):
        self.certificate = os.path.join(folder, name + ".crt")
        self.key = os.path.join(folder, name + ".key")


class Authority:
    """A CA in a folder, and what it signs."""

    def __init__(self, folder, name="ca"):
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.own = Certificate(folder, name)
        self.file = self.own.certificate
        self._openssl("req", "-x509", *self._new_key(self.own), "-days", "2", "-subj",
                      f"/CN={name}", "-out", self.file)

    @staticmethod
    def _new_key(certificate):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                certificate.key]

    def _openssl(self, *args):
        done = subprocess.run(["openssl", *args], stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, env={**os.environ, "RANDFILE": "/dev/null"})
        assert done.returncode == 0, done.stderr

    def issue(self, name, names="IP:127.0.0.1", days=1):
        """Signed by this CA, for these names; expired where `days` is negative."""
        made = Certificate(self.folder, name)
        request = os.path.join(self.folder, name + ".csr")
        self._openssl("req", "-new", *self._new_key(made), "-subj", f"/CN={name}", "-addext",
                      f"subjectAltName={names}", "-out", request)
        self._openssl("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self.own.key,
                      "-copy_extensions", "copy", "-days", str(days), "-out", made.certificate)
        return made
