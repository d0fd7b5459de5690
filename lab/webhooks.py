"""Webhooks of engines that run beside the API server instead of in a pod."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from lab.cluster import Cluster


def documents(*paths: Path) -> list[dict[str, Any]]:
    """Load every YAML document of some files."""
    return [document for path in paths for document in yaml.load_all(path.read_text(), _Loader) if document]


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C loader: Kueue's CRDs are megabytes of YAML and take the Python one many seconds."""


def beside(
    cluster: Cluster,
    configurations: Iterable[dict[str, Any]],
    *,
    prefix: str,
    port: int,
    keep: Callable[[dict[str, Any]], bool] = lambda _: True,
) -> list[dict[str, Any]]:
    """Point webhook configurations at a port of the node instead of a Service.

    `prefix` tells engines apart, which all ship the same object names; `keep` chooses webhooks, since one whose engine
    is not up blocks what it covers.
    """
    bundle = base64.b64encode(cluster.authority.read_bytes()).decode()
    for configuration in configurations:
        configuration["metadata"]["name"] = f"{prefix}-{configuration['metadata']['name']}"
        configuration["webhooks"] = [webhook for webhook in configuration["webhooks"] if keep(webhook)]
        for webhook in configuration["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
    return [configuration for configuration in configurations if configuration["webhooks"]]
