"""Live measurement: sensors, the sampler, sessions, the journal and its recovery.

``carbonlens.metering.integrate`` is the integration of ``carbonlens.signals``.
"""
