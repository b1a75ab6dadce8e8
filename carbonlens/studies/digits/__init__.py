"""The digits study: a small image classifier, exported, pruned and quantized."""
