"""Devices: which accelerators the work may use, how they are divided, and who uses them."""
