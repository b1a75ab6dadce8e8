"""A tree of what a figure rests on, over very many runs."""

from carbonlens.reporting.explanation import Item, tree


class Compared(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    times = 0

    def __eq__(self, other):
        Compared.times += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_a_long_list_of_runs_is_gone_through_once():
    names = tuple(Compared(f"run:{n}") for n in range(2000))
    root = Item(item_id="total", kind="figure", title="Total", inputs=("factor", *names, "price"))
    Compared.times = 0
    node = tree(root, lambda name: Item(item_id=name, kind="run", title=name), most=10)
    assert Compared.times < 10 * len(names)
    assert [c.item.item_id for c in node.children] == ["factor", *names[:10], "price"]
    assert node.hidden == names[10:]
