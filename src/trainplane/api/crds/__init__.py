"""The CRDs, emitted from the types: `python -m trainplane.api.crds` writes `manifests/crds/`.

`schema` turns a type into a structural schema, `emit` wraps it into a CustomResourceDefinition, `generate` makes
`podschema.json` (the parts that belong to Kubernetes and JobSet).
"""
