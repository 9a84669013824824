"""Certificates for tests, signed by a test authority that no system trusts."""

from __future__ import annotations

import datetime
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate for a name, and the authority that vouches for it."""

    authority: Path
    chain: Path

    def serving(self) -> ssl.SSLContext:
        """Return the TLS context of a server of that name."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain)
        return context


def certify(name: str, folder: Path) -> Certificate:
    """Create an authority and let it sign a certificate for `name`."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "A test's authority")])
    now = datetime.datetime.now(datetime.UTC)

    def signed(subject: x509.Name, public: ec.EllipticCurvePublicKey, extension: x509.ExtensionType) -> bytes:
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        )
        return builder.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = Certificate(folder / f"{name}.authority.pem", folder / f"{name}.chain.pem")
    certificate.authority.write_bytes(
        signed(issuer, authority_key.public_key(), x509.BasicConstraints(ca=True, path_length=0))
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    certificate.chain.write_bytes(
        private + signed(subject, key.public_key(), x509.SubjectAlternativeName([x509.DNSName(name)]))
    )
    return certificate
