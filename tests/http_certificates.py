"""An authority of our own and certificates that it has signed, made when a test asks for them."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates into a folder; `bundle` is its own, for those who trust it."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"tramai tests {name}")])
        self._own = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=0), ())
        self.bundle = folder / f"{name}.pem"
        self.bundle.write_bytes(self._own.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *, password: str | None = None) -> tuple[Path, Path]:
        """A certificate for localhost and 127.0.0.1, and its key, which a password may lock."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = (x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._signed(subject, key, x509.BasicConstraints(ca=False, path_length=None), names)
        lock: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            lock = serialization.BestAvailableEncryption(password.encode())
        cert, private = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        private.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock))
        return cert, private

    def server(self, *, asks: bool = False) -> ssl.SSLContext:
        """What a server has; `asks`: it wants a certificate of its client, signed here."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue("server"))
        if asks:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.bundle)
        return context

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        constraints: x509.BasicConstraints,
        names: tuple[x509.GeneralName, ...],
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        # From 3.13 on Python wants an authority to say that it may sign.
        signs = bool(constraints.ca)
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=signs,
            crl_sign=signs,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=2))
            .add_extension(constraints, critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())
