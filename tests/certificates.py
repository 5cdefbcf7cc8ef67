"""A certificate authority for a test, and a certificate of this machine that it has signed: made when asked for."""

import datetime as dt
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE: Final = dt.timedelta(days=1)
_SKEW: Final = dt.timedelta(minutes=5)  # valid also for a clock that is a little behind


@dataclass(frozen=True)
class Certificates:
    """Files in PEM: what a client trusts, and what a server on 127.0.0.1 or localhost shows."""

    ca: Path
    certificate: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        """Give the context with which a server offers TLS."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate, self.key)
        return context


def made(folder: Path, address: str = "127.0.0.1") -> Certificates:
    """Give new certificates of an address of this machine, written into a folder that only the test reads."""
    authority_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _authority(authority_key)
    certificate = _server_certificate(server_key.public_key(), address, authority, authority_key)
    files = Certificates(folder / "ca.pem", folder / "certificate.pem", folder / "key.pem")
    files.ca.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files.key.touch(mode=0o600)
    files.key.write_bytes(_pem_of(server_key))
    return files


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = _name("Graticule test authority")
    return (
        _begun(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _server_certificate(
    key: ec.EllipticCurvePublicKey,
    address: str,
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(address))]
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        _begun(_name("localhost"), authority.subject, key)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(signer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _begun(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - _SKEW).not_valid_after(now + _LIFE)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
