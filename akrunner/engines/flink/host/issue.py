"""Makes a job's keys: an authority, which signs two certificates and is then forgotten, and a token.

This runs where the job is submitted; nothing else needs `cryptography`.
"""

from __future__ import annotations

import datetime
import importlib
from dataclasses import dataclass
from typing import Any

from akrunner.engines.flink.control import library
from akrunner.engines.flink.keys import AGENTS, HOST, Keys, token
from akrunner.errors import ConfigError

#: how long a certificate is valid before now and after now: clocks of a cluster's machines differ, and a stream may run for
#: years
_BEFORE, _AFTER = datetime.timedelta(days=1), datetime.timedelta(days=3650)
_NEEDED = (
    "engine 'flink' needs grpcio, protobuf and cryptography in the Python that submits: pip install 'akrunner[cluster]' "
    "(akrunner[flink] and akrunner[all] have them)"
)


@dataclass(frozen=True)
class JobKeys:
    """The keys of both ends of a job."""

    host: Keys
    agents: Keys


def check_libraries(tls: bool = True) -> None:
    """Check that this Python has the libraries that the host of a job needs.

    Args:
        tls: whether the job uses certificates.
    Raises:
        ConfigError: a library is missing.
    """
    try:
        # where gRPC is imported first decides whether it reports strangers on the terminal
        library()
        for name in ("google.protobuf", *(["cryptography"] if tls else [])):
            importlib.import_module(name)
    except ImportError as e:
        raise ConfigError(f"{_NEEDED}: {e}") from None


def issued(tls: bool = True) -> JobKeys:
    """Return the keys of a new job.

    Args:
        tls: whether to make certificates.
    Raises:
        ConfigError: a library is missing.
    """
    check_libraries(tls)
    shared = token()
    if not tls:
        return JobKeys(Keys(shared), Keys(shared))
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID

    authority = ec.generate_private_key(ec.SECP256R1())
    issuer = _name("akrunner job")
    root = _certificate(issuer, authority.public_key(), issuer, authority, x509.BasicConstraints(True, 0), None, "")

    def of(name: str, use: Any) -> Keys:
        key = ec.generate_private_key(ec.SECP256R1())
        made = _certificate(_name(name), key.public_key(), issuer, authority, x509.BasicConstraints(False, None), use, name)
        return Keys(shared, _pem(root), _pem(made), _key_pem(key))

    return JobKeys(of(HOST, ExtendedKeyUsageOID.SERVER_AUTH), of(AGENTS, ExtendedKeyUsageOID.CLIENT_AUTH))


def _name(text: str) -> Any:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _certificate(subject: Any, public: Any, issuer: Any, signer: Any, basic: Any, use: Any, name: str) -> Any:
    """Return a signed certificate.

    Args:
        use: what the certificate may be used for; None to sign others.
        name: the name that it is valid for.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + _AFTER)
        .add_extension(basic, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .add_extension(_usage(signs=use is None), critical=True)
    )
    if use is not None:
        made = made.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return made.sign(signer, hashes.SHA256())


def _usage(signs: bool) -> Any:
    from cryptography import x509

    no = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only", "decipher_only"),
        False,
    )
    return x509.KeyUsage(digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, **no)


def _pem(certificate: Any) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return str(certificate.public_bytes(Encoding.PEM).decode())


def _key_pem(key: Any) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return str(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())
