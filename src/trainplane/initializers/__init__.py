"""What fetches datasets and models inside user pods before training starts. Empty today."""
