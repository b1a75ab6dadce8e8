"""Render: from a report view to finished HTML and PDF."""
