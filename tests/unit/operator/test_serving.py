from __future__ import annotations

import logging
import ssl
from typing import TYPE_CHECKING

import pytest

from tests.unit.operator.world import World
from trainplane.api.configuration import TLS, CertManagement, Configuration
from trainplane.kube.certificates import FileCertificates, ManagedCertificates, ServingContext
from trainplane.operator.serving import certificates, older_targets, serving_context
from trainplane.operator.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path


def ciphers(context: ssl.SSLContext) -> set[str]:
    return {cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"}


def test_the_floor_is_twelve_or_what_the_file_says() -> None:
    assert serving_context(TLS()).context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert serving_context(TLS(min_version="1.3")).context.minimum_version == ssl.TLSVersion.TLSv1_3


def test_older_versions_are_not_served(caplog: pytest.LogCaptureFixture) -> None:
    assert serving_context(TLS(min_version="1.0")).context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert caplog.messages == ["TLS below 1.2 is not served"]


def test_gos_names_of_ciphers() -> None:
    suites = [
        "TLS_AES_128_GCM_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_RSA_WITH_AES_128_CBC_SHA256",
    ]
    assert ciphers(serving_context(TLS(cipher_suites=suites)).context) == {
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-RSA-CHACHA20-POLY1305",
        "AES128-SHA256",
    }


def test_a_typo_is_said_and_not_obeyed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    context = serving_context(TLS(cipher_suites=["TLS_GHOST_WITH_NOTHING"], next_protos=["h2"])).context
    assert len(ciphers(context)) > 3
    assert caplog.messages == ["not all cipher suites are known", "only http/1.1 is served"]


def test_certificates_of_our_own_or_from_files(tmp_path: Path) -> None:
    world = World()
    managed = certificates(Settings(), world.client, ServingContext(), world.clock)
    assert isinstance(managed, ManagedCertificates)
    assert managed._settings.secret == "kubeflow-trainer-webhook-cert"
    assert managed._settings.policy.dns_names == ("kubeflow-trainer-controller-manager.kubeflow-system.svc",)
    assert managed._settings.policy.ca_name == "kubeflow-trainer-ca"
    assert [str(target) for target in managed._targets] == [
        "MutatingWebhookConfiguration/defaulter.trainer.kubeflow.org",
        "ValidatingWebhookConfiguration/validator.trainer.kubeflow.org",
    ]
    off = Configuration(cert_management=CertManagement(enable=False))
    files = certificates(Settings(off, certificates=tmp_path), world.client, ServingContext(), world.clock)
    assert isinstance(files, FileCertificates)
    assert files.certificate == tmp_path / "tls.crt"


@pytest.mark.parametrize(
    ("kinds", "count"), [((), 0), (("v2alpha1trainjobs",), 0), (("pytorchjobs",), 2), (("pytorchjobs", "mpijobs"), 3)]
)
def test_what_serves_older_kinds_trusts_us_only_where_they_are_served(kinds: tuple[str, ...], count: int) -> None:
    assert len(older_targets(kinds)) == count
