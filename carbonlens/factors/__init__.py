"""Factors: tables of dated, sourced and licensed figures, bundled and the user's own."""
