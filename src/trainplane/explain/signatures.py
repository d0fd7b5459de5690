"""Signatures: what libraries print when something of a known class happens.

Each is tried on one line, cleaned and cut, so its cost is bounded. Facts of their formats are from the libraries' own
documentation and sources: CPython, torch and its elastic launcher, gloo, NCCL, CUDA, the NVIDIA driver,
huggingface_hub, botocore. Special ones stand before general ones; the first that fits counts.
"""

from __future__ import annotations

import re
from typing import Final

_NETWORKED: Final = re.compile(
    r"^(?:[\w.]*\.)?(?:RuntimeError|OSError|EOFError|TimeoutError|BrokenPipeError|Connection\w*Error|Dist\w*Error"
    r"|torch\.distributed\.\w+|Rendezvous\w*Error|IOError|InternalError)\b"
)
"""Exceptions by which libraries tell that a peer is gone: a user's ValueError that speaks of one is the user's."""

_ONLY_NETWORKED: Final = frozenset({"PeerLost", "CollectiveTimeout", "RendezvousTimeout"})


def _signature(name: str, *patterns: str) -> tuple[str, re.Pattern[str]]:
    return name, re.compile("|".join(patterns))


_TABLE: Final = (
    _signature("Terminated", r"SignalException: Process \d+ got signal: (?:15|2)\b", r"^KeyboardInterrupt\b"),
    # -- devices
    _signature(
        "GpuFault",
        r"NVRM: Xid",
        r"\bXid \(PCI:",
        r"[Uu]ncorrectable ECC",
        r"ECC[ _]UNCORRECTABLE",
        r"ECCUncorrectable",
        r"fallen off the bus",
        r"GPU is lost",
    ),
    _signature(
        "CudaOutOfMemory",
        r"(?:CUDA|HIP|XPU) out of memory",
        r"OutOfMemoryError: (?:CUDA|HIP)",
        r"CUDA_ERROR_OUT_OF_MEMORY",
        r"CUBLAS_STATUS_ALLOC_FAILED",
        r"RESOURCE_EXHAUSTED: Out of memory",
        r"CUDA error: out of memory",
    ),
    _signature(
        "GpuMissing",
        r"No CUDA GPUs are available",
        r"Found no NVIDIA driver",
        r"driver version is insufficient",
        r"not compiled with CUDA",
        r"no CUDA-capable device",
        r"invalid device ordinal",
        r"libcuda\.so",
        r"libnvidia-ml\.so",
        r"Can't initialize NVML",
    ),
    _signature(
        "CudaError",
        r"CUDA error: ",
        r"CUDA_ERROR_",
        r"CUBLAS_STATUS_",
        r"CUDNN_STATUS_",
        r"AcceleratorError: ",
        r"device-side assert",
    ),
    # -- memory, disk
    _signature(
        "SharedMemory",
        r"DataLoader worker .*(?:Bus error|shared memory)",
        r"insufficient shared memory",
        r"shared memory object",
        r"/dev/shm.*No space left",  # noqa: S108 what is looked for, not where something is put
        r"No space left on device.*/dev/shm",
        r"out of shared memory",
    ),
    _signature(
        "OutOfMemory",
        r"^(?:[\w.]*\.)?MemoryError\b",
        r"DataLoader worker .*killed by signal: Killed",
        r"[Cc]annot allocate memory",
        r"can't allocate memory",
        r"std::bad_alloc",
        r"\[Errno 12\]",
        r"^Out of memory",
        r"oom-kill",
        r"Memory cgroup out of memory",
    ),
    _signature(
        "DiskFull", r"No space left on device", r"\[Errno 28\]", r"ENOSPC", r"Disk quota exceeded", r"\[Errno 122\]"
    ),
    # -- peers
    _signature("PortTaken", r"[Aa]ddress already in use", r"EADDRINUSE", r"\[Errno 98\]", r"errno: 98\b"),
    _signature(
        "CollectiveTimeout",
        r"Watchdog caught collective operation timeout",
        r"collective operation timeout",
        r"Timed out waiting \d+ms for",
        r"Application timeout caused pair closure",
        r"monitoredBarrier",
        r"wait timeout after \d+ms",
        r"barrier timeout",
        r"[Cc]ollective .*timed out",
    ),
    _signature(
        "WrongWorldSize",
        r"world[ _]size[^.]{0,60}(?:mismatch|does not match|not equal|differs|inconsistent)",
        r"[Rr]ank[^.]{0,40}(?:out of range|exceeds|>= ?world|greater than[^.]{0,20}world)",
        r"(?:[Dd]uplicate|conflicting) rank",
        r"invalid (?:rank|world[ _]size)",
        r"WORLD_SIZE[^.]{0,40}(?:expected|must)",
        r"[Ii]nvalid rank \d+, rank should be",
    ),
    _signature(
        "RendezvousTimeout",
        r"\d+/\d+ (?:clients|workers|nodes) joined",
        r"waiting for clients",
        r"RendezvousTimeoutError",
        r"timed out after \d+\w* while trying to connect",
        r"[Tt]imed out.*(?:join|rendezvous)",
        r"rendezvous.*[Tt]imed? ?out",
    ),
    _signature(
        "PeerLost",
        r"[Cc]onnection (?:was )?(?:closed|reset|aborted|lost)(?: by (?:remote )?peer)?",
        r"[Bb]roken pipe",
        r"[Ss]ocket closed",
        r"remote process (?:exited|has)",
        r"ncclRemoteError",
        r"recvValue failed",
        r"failed to recv",
        r"sendBytes failed",
        r"recvVector",
        r"Rendezvous(?:Closed|Connection|GracefulExit)\w*Error",
        r"connectFullMesh failed",
        r"pair\.cc.*(?:closed|reset|refused)",
        r"TCPStore.*(?:closed|reset|refused|gone)",
        r"[Pp]eer (?:has )?(?:closed|gone|lost|died|exited|disconnected)",
        r"keep-alive heartbeat",
        r"\[Errno (?:32|104)\]",
        r"heartbeat monitor",
    ),
    _signature(
        "NcclError",
        r"NCCL [Ee]rror(?: in\b|:| \d)",
        r"NCCL WARN",
        r"nccl(?:System|Internal|Unhandled\w*|InvalidUsage)Error",
        r"DistBackendError: NCCL",
        r"Bootstrap : no socket interface",
    ),
    # -- data, network, credentials
    _signature(
        "CertificateExpired",
        r"certificate has expired",
        r"certificate is not yet valid",
        r"CERT_HAS_EXPIRED",
        r"certificate expired",
    ),
    _signature(
        "CertificateUntrusted",
        r"CERTIFICATE_VERIFY_FAILED",
        r"SSLCertVerificationError",
        r"x509: certificate signed by unknown",
    ),
    _signature(
        "AccessDenied",
        r"GatedRepoError",
        r"\b40[13] (?:Client Error|Forbidden|Unauthorized)",
        r"AccessDenied",
        r"InvalidAccessKeyId",
        r"SignatureDoesNotMatch",
        r"NoCredentialsError",
        r"[Uu]nable to locate credentials",
        r"ExpiredToken",
        r"LocalTokenNotFoundError",
        r"Invalid (?:username or password|credentials|user token)",
        r"Access to model .* is restricted",
    ),
    _signature(
        "DataMissing",
        r"RepositoryNotFoundError",
        r"RevisionNotFoundError",
        r"EntryNotFoundError",
        r"DatasetNotFoundError",
        r"NoSuch(?:Bucket|Key)",
        r"\b404 (?:Client Error|Not Found)",
    ),
    _signature(
        "NameNotResolved",
        r"[Nn]ame or service not known",
        r"[Tt]emporary failure in name resolution",
        r"nodename nor servname",
        r"gaierror",
        r"[Cc]ould not resolve host",
        r"NameResolutionError",
        r"no such host",
    ),
    _signature(
        "NetworkError",
        r"[Cc]onnection refused",
        r"[Nn]etwork is unreachable",
        r"[Nn]o route to host",
        r"MaxRetryError",
        r"ReadTimeout",
        r"ConnectTimeout",
        r"[Cc]onnection timed out",
        r"\[Errno (?:101|110|111|113)\]",
        r"\b50[234] (?:Server Error|Bad Gateway|Service)",
    ),
    # -- the program
    _signature(
        "MissingModule", r"ModuleNotFoundError", r"No module named", r"ImportError: ", r"cannot open shared object file"
    ),
    _signature(
        "WrongCommand",
        r"can't open file '",
        r": not found$",
        r"command not found",
        r"executable file not found",
        r"No such file or directory: exec",
        r"exec: \"[^\"]*\": ",
        r"can't execute",
        r"unable to start container process",
        r"cannot execute: required file",
    ),
    _signature(
        "WrongArchitecture",
        r"[Ee]xec format error",
        r"cannot execute binary file",
        r"rosetta error",
        r"[Ii]llegal instruction",
    ),
    _signature(
        "WrongArguments",
        r"error: (?:unrecognized arguments|the following arguments are required|argument |invalid choice)",
        r"[Nn]o such option",
        r"invalid option",
        r"unknown option",
        r"[Mm]issing (?:argument|option)",
    ),
    _signature(
        "NotANumber",
        r"[Ll]oss (?:is|was|became) (?:nan|inf|NaN)",
        r"FloatingPointError",
        r"non-finite loss",
        r"[Nn]a[Nn] (?:loss|detected)",
    ),
    _signature(
        "PermissionDenied",
        r"PermissionError",
        r"[Pp]ermission denied",
        r"Read-only file system",
        r"Operation not permitted",
    ),
    _signature(
        "FileMissing", r"FileNotFoundError", r"No such file or directory", r"NotADirectoryError", r"IsADirectoryError"
    ),
    _signature(
        "NativeCrash",
        r"[Ss]egmentation fault",
        r"SIGSEGV",
        r"SIGABRT",
        r"Fatal Python error",
        r"terminate called",
        r"double free",
        r"core dumped",
    ),
)

_HARD: Final = frozenset({"GpuFault", "OutOfMemory", "SharedMemory", "CollectiveTimeout"})
"""Of these, a line counts also if others follow it: nobody gets over them, but what comes of them is told later."""
_GOT_OVER: Final = re.compile(
    r"(?i)\bre-?tr(?:y|ies|ying)\b|\btry(?:ing)? again\b|\bcaught\b(?! collective)|\bignor|\bfall(?:ing)? ?back|\bskip"
)
"""A line that says so is no fault."""
_COMPLAINT: Final = re.compile(
    r"(?i)error\b|\b(?:fatal|fail(?:ed|ure)|exception|panic|abort(?:ed|ing)?|cannot|could not)\b"
)


def match_exception(line: str) -> str | None:
    """Return the class of an exception's line, `package.Error: message`; None if it is no special one."""
    for name, pattern in _TABLE:
        if pattern.search(line) and (name not in _ONLY_NETWORKED or _NETWORKED.search(line)):
            return name
    return None


def match_line(line: str, *, last: bool) -> str | None:
    """Return the class of a line that stands in no traceback; `last`: nothing was said after it."""
    if _GOT_OVER.search(line):
        return None
    for name, pattern in _TABLE:
        if pattern.search(line):
            return name if last or name in _HARD else None
    return None


def complains(line: str) -> bool:
    """Return whether a line speaks of a failure, be it in words of no library that is known here."""
    return bool(_COMPLAINT.search(line)) and not _GOT_OVER.search(line)
