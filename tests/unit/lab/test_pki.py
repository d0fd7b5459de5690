from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.x509.oid import ExtensionOID, NameOID

from lab.pki import Authority

if TYPE_CHECKING:
    from pathlib import Path


def test_a_certificate_carries_user_groups_and_hosts(tmp_path: Path) -> None:
    pair = Authority.create(tmp_path, "a").issue("u", "jane", groups=("x", "y"), hosts=("h", "10.0.0.1"))
    certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    subject = certificate.subject
    assert [a.value for a in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == ["x", "y"]
    assert [a.value for a in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["jane"]
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["h"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("10.0.0.1")]
    assert pair.key.stat().st_mode & 0o077 == 0


def test_a_loaded_authority_issues_as_the_one_that_was_made(tmp_path: Path) -> None:
    Authority.create(tmp_path, "a")
    pair = Authority.load(tmp_path).issue("server", "server", hosts=("localhost",))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pair.certificate, pair.key)
    client = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    here, there = socket.socketpair()
    with here, there:

        def serve() -> None:
            with server.wrap_socket(there, server_side=True) as secured:
                secured.recv(2)

        thread = threading.Thread(target=serve)
        thread.start()
        with client.wrap_socket(here, server_hostname="localhost") as secured:
            secured.send(b"ok")
        thread.join()


def test_certificates_have_the_identifiers_that_strict_clients_ask_for(tmp_path: Path) -> None:
    pair = Authority.create(tmp_path, "a").issue("u", "u")
    for path in (tmp_path / "ca.crt", pair.certificate):
        extensions = x509.load_pem_x509_certificate(path.read_bytes()).extensions
        present = {extension.oid for extension in extensions}
        assert {ExtensionOID.AUTHORITY_KEY_IDENTIFIER, ExtensionOID.SUBJECT_KEY_IDENTIFIER} <= present
