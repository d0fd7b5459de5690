"""Is this cluster fit, for this caller? Facts of machine and cluster (`reading`), and what they mean (`judge`)."""
