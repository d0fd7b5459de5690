"""Every fault that is planted. The list grows; what is not found leads to a new case, never to a shorter list."""

from __future__ import annotations

from tests.conformance.mutation import admission_faults, framework_faults, rendering_faults, status_faults

FAULTS = (*framework_faults.FAULTS, *rendering_faults.FAULTS, *admission_faults.FAULTS, *status_faults.FAULTS)
