"""What a TrainJob is: types per kind, names, quantities, and the CRDs made of them.

Imports nothing of ours. What is here is the contract with users, pods and peers. Views are for reading, trees are for
writing: `docs/architecture/api.md`.
"""
