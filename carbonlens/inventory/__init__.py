"""User configuration in TOML: studies, assumptions, later sites and meters."""
