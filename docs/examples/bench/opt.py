"""The same sum by its formula."""

last = 2_000_000 - 1
print(last * (last + 1) * (2 * last + 1) // 6)
