"""Keeps a ConfigMap `census` in each namespace at the number of its pods. Run it with KUBECONFIG set."""

import asyncio
import signal

from trainplane.kube.client import Client
from trainplane.kube.controller import DONE, Controller, Result
from trainplane.kube.manager import Manager
from trainplane.kube.projection import METADATA, Index
from trainplane.kube.reflector import Reflector
from trainplane.kube.resource import PODS, Key, Resource
from trainplane.kube.store import Store

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")


async def main() -> None:
    """Mirror pods and censuses, and look at a namespace whenever something in it changed."""
    pods = Store(PODS, METADATA, {"namespace": Index(dict, lambda pod: [pod["metadata"]["namespace"]])})
    censuses = Store(CONFIGMAPS)
    async with Client.connect() as client:

        async def reconcile(namespace: str) -> Result:  # run again on every change, and later if it raises
            number = len(pods.by_index("namespace", namespace))
            if number or Key(namespace, "census") in censuses:
                census = {"metadata": {"name": "census", "namespace": namespace}, "data": {"pods": str(number)}}
                await client.apply(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", **census})
            return DONE

        controller = Controller("census", reconcile)
        look = controller.source(lambda change: [change.key.namespace])
        watch_pods = Reflector(client, PODS, pods, [look])
        watch_censuses = Reflector(client, CONFIGMAPS, censuses, [look], fields={"metadata.name": "census"})
        manager = Manager([watch_pods, watch_censuses], [controller])
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, manager.stop)
        await manager.run()


if __name__ == "__main__":
    asyncio.run(main())
