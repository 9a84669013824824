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

    def signed(subject: x509.Name, public: ec.EllipticCurvePublicKey, *extensions: x509.ExtensionType) -> bytes:
        # Python 3.13 verifies strictly: identifiers of the keys, and the authority's use, are required.
        authority_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
        identifiers = (x509.SubjectKeyIdentifier.from_public_key(public), authority_id)

        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )
        for each in (*extensions, *identifiers):
            builder = builder.add_extension(each, critical=isinstance(each, x509.BasicConstraints | x509.KeyUsage))
        return builder.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = Certificate(folder / f"{name}.authority.pem", folder / f"{name}.chain.pem")
    use = dict.fromkeys(
        ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False
    )
    signs = x509.KeyUsage(**use, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False)
    certificate.authority.write_bytes(
        signed(issuer, authority_key.public_key(), x509.BasicConstraints(ca=True, path_length=0), signs)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    certificate.chain.write_bytes(
        private + signed(subject, key.public_key(), x509.SubjectAlternativeName([x509.DNSName(name)]))
    )
    return certificate
