"""What is published, made by one command: `make release`, which is `python -m release build` and its tests.

    source ─► packages   wheel and sdist, of the committed files alone
           ─► chart      the Helm chart, if helm is there
           ─► image      operator and hub, if podman is there
           ─► sbom       what is in them, in CycloneDX
           ─► audit      what is known against that
    checksums ─► signing ─► provenance ─► verify

No part of the product: nothing of it is shipped. What could not be made is named with its reason and never passed over;
`--require` makes it an error.
"""
