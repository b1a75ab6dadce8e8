"""Power: energy of average power, of a utilisation, and per sample, token or request."""

from __future__ import annotations

from carbonlens.accounting.formulas import Quantity, energy_kwh
from carbonlens.domain.units import S_PER_HOUR, W_PER_KW


def energy_of_power_kwh(power_w: Quantity, hours: Quantity) -> Quantity:
    """Return kWh of an average power over hours, or of the power of one device over device hours."""
    return power_w * hours / W_PER_KW


def energy_of_power_j(power_w: Quantity, seconds: Quantity) -> Quantity:
    """Return joules of an average power over seconds."""
    return power_w * seconds


def average_power_w(energy_j: Quantity, seconds: Quantity) -> Quantity:
    """Return the average power of an energy over seconds."""
    return energy_j / seconds


def power_at_utilisation_w(idle_w: Quantity, full_w: Quantity, utilisation: Quantity) -> Quantity:
    """Return power between idle and full load, linear in utilisation from 0 to 1.

    The curve of Cloud Carbon Footprint; real machines lie above it at low load.
    """
    return idle_w + utilisation * (full_w - idle_w)


def energy_per_piece_j(power_w: Quantity, pieces_per_s: Quantity) -> Quantity:
    """Return joules per sample, token or request of a power and a rate."""
    return power_w / pieces_per_s


def pieces_per_j(power_w: Quantity, pieces_per_s: Quantity) -> Quantity:
    """Return samples, tokens or requests per joule of a power and a rate."""
    return pieces_per_s / power_w


def energy_of_pieces_kwh(energy_per_piece_j: Quantity, pieces: Quantity) -> Quantity:
    """Return kWh of a number of pieces."""
    return energy_kwh(energy_per_piece_j * pieces)


def cost_of_pieces(energy_per_piece_j: Quantity, pieces: Quantity, price_per_kwh: Quantity) -> Quantity:
    """Return what the electricity of a number of pieces costs, in the price's currency."""
    return energy_of_pieces_kwh(energy_per_piece_j, pieces) * price_per_kwh


def in_flight(pieces_per_s: Quantity, seconds_each: Quantity) -> Quantity:
    """Return how many are under way at once (Little's law)."""
    return pieces_per_s * seconds_each


def loss_share(fed: Quantity, delivered: Quantity) -> Quantity:
    """Return the share of an energy that is lost between two meters, such as a power supply's."""
    return (fed - delivered) / fed


def seconds_of_hours(hours: Quantity) -> Quantity:
    """Return seconds of hours."""
    return hours * S_PER_HOUR
