"""Looking at one artefact, as a stage does."""

from carbonlens.instrument.artefact_figures import Allowance
from carbonlens.instrument.artefacts import look_at


def looked(thing, example=None, *, limit_s=60.0):
    """Return its record."""
    return said(thing, example, limit_s=limit_s)[0]


def said(thing, example=None, *, limit_s=60.0):
    """Return its record and the texts of what is said of it."""
    artefact, notes = look_at(thing, "model", "in", example=example, allowance=Allowance(limit_s))
    return artefact, [f"{n.code} {n.message}" for n in notes]
