"""The front of the hub server: replicas without state that keep its API discoverable (`forward` says why)."""
