"""User files: studies, assumptions, and the inventory of sites, meters, certificates, assets and prices."""
