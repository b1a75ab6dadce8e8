"""One function per use case; the command line and the Python API are thin skins over these."""
