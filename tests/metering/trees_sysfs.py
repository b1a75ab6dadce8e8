"""Writing of kernel files as sysfs shows them."""


def put(path, text):
    """Set a file's whole text, in place as sysfs files change."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = "r+" if path.exists() else "w"
    with path.open(mode, encoding="utf-8") as stream:
        stream.truncate(0)
        stream.write(f"{text}\n")
    return path


def device_tree(root, model, *compatible):
    """Name a machine as firmware does, with zero bytes at the ends."""
    folder = root / "proc" / "device-tree"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model").write_bytes(model.encode() + b"\0")
    (folder / "compatible").write_bytes(b"".join(c.encode() + b"\0" for c in compatible))
