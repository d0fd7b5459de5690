"""The aggregated API: who asks, what they may see, and the answers."""
