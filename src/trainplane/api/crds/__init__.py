"""The CRDs, emitted from the types: `python -m trainplane.api.crds` writes `manifests/crds/` and `crds-legacy/`.

`schema` turns a type into a structural schema, `emit` wraps it into a CustomResourceDefinition, `legacy` lists the
older kinds, `generate` makes `podschema.json` (the parts that belong to Kubernetes and JobSet).
"""
