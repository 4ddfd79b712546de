"""The keys a job is given: who has signed what, for whom, for how long, and that nothing of the authority stays."""

from __future__ import annotations

import datetime
import sys

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from akrunner.engines.flink.host.issue import JobKeys, check_libraries, issued
from akrunner.engines.flink.keys import AGENTS, HOST, Keys
from akrunner.errors import ConfigError


@pytest.fixture(scope="module")
def made() -> JobKeys:
    return issued()


def certificate(text: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(text.encode())


def test_both_ends_share_a_token_and_an_authority_and_nothing_else(made: JobKeys) -> None:
    host, agents = made.host, made.agents
    assert host.token == agents.token and host.authority == agents.authority and host.tls and agents.tls
    assert host.certificate != agents.certificate and host.key != agents.key


def test_each_job_has_keys_of_its_own(made: JobKeys) -> None:
    other = issued()
    for name in ("token", "authority", "certificate", "key"):
        assert getattr(made.host, name) != getattr(other.host, name)


@pytest.mark.parametrize(
    ("end", "name", "use"),
    [("host", HOST, ExtendedKeyUsageOID.SERVER_AUTH), ("agents", AGENTS, ExtendedKeyUsageOID.CLIENT_AUTH)],
)
def test_a_certificate_is_for_one_end(made: JobKeys, end: str, name: str, use: x509.ObjectIdentifier) -> None:
    keys: Keys = getattr(made, end)
    found = certificate(keys.certificate)
    found.verify_directly_issued_by(certificate(keys.authority))
    values = {extension.oid: extension.value for extension in found.extensions}
    names = values[x509.OID_SUBJECT_ALTERNATIVE_NAME]
    assert names.get_values_for_type(x509.DNSName) == [name]
    assert list(values[x509.OID_EXTENDED_KEY_USAGE]) == [use]
    assert not values[x509.OID_BASIC_CONSTRAINTS].ca and not values[x509.OID_KEY_USAGE].key_cert_sign
    key = load_pem_private_key(keys.key.encode(), None).public_key()
    shapes = (Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert key.public_bytes(*shapes) == found.public_key().public_bytes(*shapes), "its key fits"


def test_the_authority_signs_and_is_forgotten(made: JobKeys) -> None:
    root = certificate(made.host.authority)
    root.verify_directly_issued_by(root)
    basic = root.extensions.get_extension_for_class(x509.BasicConstraints)
    assert basic.critical and basic.value.ca and basic.value.path_length == 0, "what it has signed signs nothing"
    assert root.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    assert "PRIVATE" not in made.host.authority + made.agents.authority
    for keys in (made.host, made.agents):
        ours = load_pem_private_key(keys.key.encode(), None).public_key()
        assert ours != root.public_key()


def test_clocks_may_differ_by_hours_and_a_stream_may_run_for_years(made: JobKeys) -> None:
    now = datetime.datetime.now(datetime.UTC)
    for text in (made.host.authority, made.host.certificate, made.agents.certificate):
        found = certificate(text)
        assert found.not_valid_before_utc < now - datetime.timedelta(hours=23)
        assert found.not_valid_after_utc > now + datetime.timedelta(days=3 * 365)


def test_without_tls_there_is_a_token_alone() -> None:
    made = issued(tls=False)
    assert made.host == made.agents == Keys(made.host.token) and len(made.host.token) == 64 and not made.host.tls


@pytest.mark.parametrize(
    ("missing", "tls"), [("grpc", True), ("grpc", False), ("google.protobuf", False), ("cryptography", True)]
)
def test_a_library_that_is_missing_is_named(missing: str, tls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    for call in (check_libraries, issued):
        with pytest.raises(ConfigError, match=rf"pip install 'akrunner\[cluster\]'.*{missing}"):
            call(tls)


def test_certificates_are_all_that_needs_cryptography(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    check_libraries(tls=False)
    assert issued(tls=False).host.token
