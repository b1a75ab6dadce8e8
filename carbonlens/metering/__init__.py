"""Live measurement: sensors, the sampler, sessions, the journal and its recovery."""
