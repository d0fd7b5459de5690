"""What GPUs and their libraries print when they fail, written after their documented formats: there is no GPU here."""

from __future__ import annotations

from typing import Any, Final

NCCL_TIMEOUT: Final = """\
step 1200 loss 2.31
[rank3]:[E1116 05:00:01.322 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=3122, OpType=ALLREDUCE, NumelIn=16777216, Timeout(ms)=600000) ran for 600029 milliseconds
[rank3]:[E1116 05:00:01.410 ProcessGroupNCCL.cpp:684] To avoid data inconsistency, we are taking the process down.
terminate called after throwing an instance of 'c10::DistBackendError'
"""
XID: Final = """\
NVRM: Xid (PCI:0000:3b:00): 79, pid=2271, name=python3, GPU has fallen off the bus.
Traceback (most recent call last):
  File "/workspace/train.py", line 88, in step
torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251, unhandled cuda error
"""
CUDA_MEMORY: Final = """\
Traceback (most recent call last):
  File "/workspace/train.py", line 88, in step
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.11 GiB
"""
ECC: Final = """\
Traceback (most recent call last):
  File "/workspace/train.py", line 88, in step
RuntimeError: CUDA error: uncorrectable ECC error encountered
CUDA kernel errors might be asynchronously reported at some other API call.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
"""


def _pod(code: int) -> dict[str, Any]:
    """Return a pod whose container ended so."""
    state = {"terminated": {"exitCode": code, "reason": "Error", "finishedAt": "2026-11-16T05:00:00Z"}}
    return {
        "metadata": {"name": "a-node-0-0-x", "labels": {"jobset.sigs.k8s.io/replicatedjob-name": "node"}},
        "spec": {"nodeName": "gpu-7", "containers": [{"name": "node"}]},
        "status": {"phase": "Failed", "containerStatuses": [{"name": "node", "state": state}]},
    }


RECORDED: Final = {
    "nccl-timeout": (_pod(134), NCCL_TIMEOUT.splitlines(), "CollectiveTimeout"),
    "xid": (_pod(1), XID.splitlines(), "GpuFault"),
    "cuda-memory": (_pod(1), CUDA_MEMORY.splitlines(), "CudaOutOfMemory"),
    "ecc": (_pod(1), ECC.splitlines(), "GpuFault"),
}
"""By name: the pod, the end of its log, the class."""
