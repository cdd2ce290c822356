"""Sample bills: deterministic, realistic deliveries in the types that the clouds really write."""
