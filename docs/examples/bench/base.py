"""The work as it is: squares of whole numbers, one after the other."""

total = 0
for number in range(2_000_000):
    total += number * number
print(total)
