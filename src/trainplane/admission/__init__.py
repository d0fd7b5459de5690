"""May this object exist, and in which form? Pure defaulting and validation per kind; the operator's webhooks call it.

    default_trainjob   what was sent ─► what will be stored (older generations take today's form, times are stamped)
    json_patch         the two as the operations that a webhook answers with
    validate_trainjob  what would be stored ─► errors that refuse it, warnings that are shown
    validate_runtime   the same for both kinds of runtime
    describe           a refusal as a person reads it

Nothing here reads a clock, a cache or the network: facts come in as values. `docs/architecture/admission.md`.
"""

from trainplane.admission.defaulting import Defaulted, default_trainjob
from trainplane.admission.jsonpatch import json_patch
from trainplane.admission.message import describe
from trainplane.admission.runtimes import validate_runtime
from trainplane.admission.trainjobs import validate_trainjob

__all__ = ["Defaulted", "default_trainjob", "describe", "json_patch", "validate_runtime", "validate_trainjob"]
