from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import ssl
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from trainplane.kube import connection, errors
from trainplane.kube.config import Config
from trainplane.kube.credentials import Credential, StaticCredentials
from trainplane.kube.testing.server import FakeServer
from trainplane.kube.tls import Tls
from trainplane.kube.transport import Transport, TransportSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.unit.kube.io.support import JumpingClock

ONCE = TransportSettings(attempts=1)


class Authority:
    """A certificate authority of a test's own."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = self._sign(self._name, self._key, constraints, [])
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM).decode()

    def issue(self, name: str, alternatives: list[x509.GeneralName] | None = None) -> tuple[str, str]:
        """Return a certificate and its key, PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        constraints = x509.BasicConstraints(ca=False, path_length=None)
        certificate = self._sign(subject, key, constraints, alternatives or [])
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode()

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        constraints: x509.BasicConstraints,
        alternatives: list[x509.GeneralName],
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(constraints, critical=True)
        )
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return builder.sign(self._key, hashes.SHA256())


AUTHORITY = Authority("the cluster's")
STRANGER = Authority("somebody else's")
LOOPBACK: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]


def server_context(directory: Path, alternatives: list[x509.GeneralName], *, ask: bool) -> ssl.SSLContext:
    certificate, key = AUTHORITY.issue("server", alternatives)
    file = directory / "server.pem"
    file.write_text(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    if ask:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=AUTHORITY.pem)
    return context


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[FakeServer]:
    """A server that asks for a client certificate of its authority."""
    async with FakeServer(tls=server_context(tmp_path, LOOPBACK, ask=True)) as running:
        yield running


async def ask(server: FakeServer, tls: Tls, credential: Credential | None = None) -> None:
    config = Config(server=server.url, tls=tls, credentials=StaticCredentials(credential))
    async with Transport(config, settings=ONCE) as transport:
        await transport.request("GET", "/version")


def files(directory: Path, pair: tuple[str, str]) -> tuple[Path, Path]:
    certificate, key = directory / "client.crt", directory / "client.key"
    certificate.write_text(pair[0])
    key.write_text(pair[1])
    return certificate, key


class TestHandshake:
    async def test_client_certificates_from_memory(self, server: FakeServer) -> None:
        certificate, key = AUTHORITY.issue("ann")
        await ask(server, Tls(ca=AUTHORITY.pem, certificate=certificate, key=key))

    async def test_client_certificates_from_files(self, server: FakeServer, tmp_path: Path) -> None:
        authority = tmp_path / "ca.crt"
        authority.write_text(AUTHORITY.pem)
        certificate, key = files(tmp_path, AUTHORITY.issue("ann"))
        await ask(server, Tls(ca=authority, certificate=certificate, key=key))

    async def test_a_plugins_certificate(self, server: FakeServer) -> None:
        await ask(server, Tls(ca=AUTHORITY.pem), Credential(certificate=AUTHORITY.issue("ann")))

    async def test_a_server_of_an_unknown_authority_is_not_trusted(self, server: FakeServer) -> None:
        certificate, key = AUTHORITY.issue("ann")
        with pytest.raises(errors.HandshakeError, match="check certificate-authority") as caught:
            await ask(server, Tls(ca=STRANGER.pem, certificate=certificate, key=key))
        assert not caught.value.retryable
        assert server.requests == []

    async def test_insecure_trusts_any_server(self, server: FakeServer) -> None:
        certificate, key = AUTHORITY.issue("ann")
        await ask(server, Tls(insecure=True, certificate=certificate, key=key))

    @pytest.mark.parametrize("pair", [None, STRANGER.issue("eve")], ids=["no certificate", "a stranger's"])
    async def test_a_client_the_server_does_not_trust(self, server: FakeServer, pair: tuple[str, str] | None) -> None:
        certificate, key = pair or (None, None)
        with pytest.raises(errors.TransportError):
            await ask(server, Tls(ca=AUTHORITY.pem, certificate=certificate, key=key))
        assert server.requests == []

    async def test_the_name_of_the_server_counts_and_can_be_given(self, tmp_path: Path) -> None:
        context = server_context(tmp_path, [x509.DNSName("inner.example")], ask=False)
        async with FakeServer(tls=context) as server:
            with pytest.raises(errors.HandshakeError):
                await ask(server, Tls(ca=AUTHORITY.pem))
            with pytest.raises(errors.HandshakeError):
                await ask(server, Tls(ca=AUTHORITY.pem, server_name="other.example"))
            await ask(server, Tls(ca=AUTHORITY.pem, server_name="inner.example"))


async def test_tls_through_a_proxy_is_between_us_and_the_server(server: FakeServer) -> None:
    asked: list[bytes] = []

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65536):
            writer.write(chunk)
        writer.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).splitlines()[0])
        port = urlsplit(server.url).port
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(relay(reader, far_writer), relay(far_reader, writer))

    certificate, key = AUTHORITY.issue("ann")
    tls = Tls(ca=AUTHORITY.pem, certificate=certificate, key=key)
    async with await asyncio.start_server(connect, "127.0.0.1", 0) as proxy:
        port = proxy.sockets[0].getsockname()[1]
        config = Config(server=server.url, tls=tls, proxy=f"http://127.0.0.1:{port}")
        async with Transport(config, settings=ONCE) as transport:
            await transport.request("GET", "/version")
    assert asked == [f"CONNECT {server.url.removeprefix('https://')} HTTP/1.1".encode()]


class TestReload:
    async def test_certificates_replaced_on_disk_are_used_within_a_minute(
        self, server: FakeServer, clock: JumpingClock, tmp_path: Path
    ) -> None:
        authority = tmp_path / "ca.crt"
        authority.write_text(AUTHORITY.pem)
        certificate, key = files(tmp_path, AUTHORITY.issue("first"))
        config = Config(server=server.url, tls=Tls(ca=authority, certificate=certificate, key=key))
        async with Transport(config, clock=clock, settings=ONCE) as transport:
            await transport.request("GET", "/version")
            first = transport._connection._tls
            files(tmp_path, AUTHORITY.issue("second"))
            await transport.request("GET", "/version")
            assert transport._connection._tls is first, "the files are not looked at on every request"
            clock.elapsed += 60
            await transport.request("GET", "/version")
            second = transport._connection._tls
            assert second is not first
            clock.elapsed += 60
            await transport.request("GET", "/version")
            assert transport._connection._tls is second, "unchanged files make no new context"

    async def test_a_failed_handshake_looks_at_the_files_again_at_once(
        self, server: FakeServer, clock: JumpingClock, tmp_path: Path
    ) -> None:
        authority = tmp_path / "ca.crt"
        authority.write_text(STRANGER.pem)
        certificate, key = AUTHORITY.issue("ann")
        config = Config(server=server.url, tls=Tls(ca=authority, certificate=certificate, key=key))
        async with Transport(config, clock=clock, settings=ONCE) as transport:
            with pytest.raises(errors.HandshakeError):
                await transport.request("GET", "/version")
            authority.write_text(AUTHORITY.pem + AUTHORITY.pem)
            await transport.request("GET", "/version")

    async def test_files_caught_half_replaced_leave_the_old_ones_in_use(
        self, server: FakeServer, clock: JumpingClock, tmp_path: Path
    ) -> None:
        certificate, key = files(tmp_path, AUTHORITY.issue("first"))
        config = Config(server=server.url, tls=Tls(ca=AUTHORITY.pem, certificate=certificate, key=key))
        async with Transport(config, clock=clock, settings=ONCE) as transport:
            await transport.request("GET", "/version")
            first = transport._connection._tls
            second = AUTHORITY.issue("second")
            certificate.write_text(second[0])
            clock.elapsed += 60
            await transport.request("GET", "/version")
            assert transport._connection._tls is first
            key.write_text(second[1])
            clock.elapsed += 60
            await transport.request("GET", "/version")
            assert transport._connection._tls is not first

    async def test_a_plugins_new_certificate_is_used_at_once(self, server: FakeServer) -> None:
        class Rotating(StaticCredentials):
            def __init__(self) -> None:
                super().__init__()
                self.pairs = [AUTHORITY.issue("one"), AUTHORITY.issue("two")]

            async def current(self) -> Credential:
                return Credential(certificate=self.pairs[0])

        credentials = Rotating()
        config = Config(server=server.url, tls=Tls(ca=AUTHORITY.pem), credentials=credentials)
        async with Transport(config, settings=ONCE) as transport:
            await transport.request("GET", "/version")
            first = transport._connection._tls
            credentials.pairs.pop(0)
            await transport.request("GET", "/version")
            assert transport._connection._tls is not first


class TestMistakes:
    @pytest.mark.parametrize(
        ("tls", "says"),
        [
            (Tls(ca="no PEM"), r"certificate-authority \(inline data\) cannot be used"),
            (Tls(ca=Path("absent.crt")), "certificate-authority absent.crt cannot be used"),
            (Tls(certificate="no PEM", key="neither"), r"client-certificate \(inline data\) with client-key"),
        ],
    )
    def test_what_cannot_be_used_is_named(self, tls: Tls, says: str) -> None:
        with pytest.raises(errors.ConfigError, match=says):
            tls.context()

    def test_a_key_of_another_certificate(self) -> None:
        tls = Tls(certificate=AUTHORITY.issue("a")[0], key=AUTHORITY.issue("b")[1])
        with pytest.raises(errors.ConfigError, match="cannot be used"):
            tls.context()

    def test_an_encrypted_key_is_refused_rather_than_asked_for_on_the_terminal(self) -> None:
        certificate, plain = AUTHORITY.issue("a")
        private = serialization.load_pem_private_key(plain.encode(), None)
        encrypted = private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        ).decode()
        with pytest.raises(errors.ConfigError, match="encrypted"):
            Tls(certificate=certificate, key=encrypted).context()

    def test_a_comment_in_another_alphabet_is_no_mistake(self, tmp_path: Path) -> None:
        file = tmp_path / "ca.crt"
        file.write_text("# f\u00fcr uns\n" + AUTHORITY.pem)
        for ca in (file, "# f\u00fcr uns\n" + AUTHORITY.pem):
            assert len(Tls(ca=ca).context().get_ca_certs()) == 1
        with pytest.raises(errors.ConfigError, match="cannot be used"):
            Tls(ca="\u00e9").context()

    def test_no_error_shows_a_key(self) -> None:
        certificate, key = AUTHORITY.issue("a")
        broken = key.replace("\n", "\u00e9", 1)
        with pytest.raises(errors.ConfigError) as caught:
            Tls(certificate=certificate, key=broken).context()
        shown = "".join(traceback.format_exception(caught.value))
        assert key.splitlines()[1] not in shown
        assert caught.value.__cause__ is None
        assert certificate.splitlines()[1] not in repr(Tls(ca=certificate, certificate=certificate, key=key))

    @pytest.mark.parametrize("missing", ["memfd_create", "/proc"])
    def test_no_key_stays_on_disk_where_there_are_no_files_in_memory(
        self, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(name: str) -> int:
            raise OSError(38, f"no {name} here")

        if missing == "/proc":
            monkeypatch.setattr("trainplane.kube.tls._memory", lambda: None)
        else:
            monkeypatch.setattr("os.memfd_create", refused)
        self.test_no_key_stays_on_disk(tmp_path, monkeypatch)

    def test_no_key_stays_on_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        certificate, key = AUTHORITY.issue("a")
        Tls(certificate=certificate, key=key).context()
        with pytest.raises(errors.ConfigError):
            Tls(certificate=certificate, key="none").context()
        assert list(tmp_path.iterdir()) == []


async def test_a_stream_that_was_left_is_closed_with_the_client(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CLOSE_SECONDS", 30.0)  # that it does not take
    certificate, key = AUTHORITY.issue("ann")
    tls = Tls(ca=AUTHORITY.pem, certificate=certificate, key=key)
    transport = Transport(Config(server=server.url, tls=tls), settings=ONCE)
    async with transport.stream("/version"):
        pass  # what it says is not read
    async with asyncio.timeout(20):
        await transport.close()
    assert all(one.fileno() == -1 for one in transport._connection._sockets)


def test_verification_is_on_unless_said_otherwise() -> None:
    context = Tls().context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    loose = replace(Tls(), insecure=True).context()
    assert loose.verify_mode is ssl.CERT_NONE
