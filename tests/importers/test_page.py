"""The page of importers is what the importers say."""

from scripts.write_importers import PAGE, page


def test_the_page_is_up_to_date():
    assert PAGE.read_text("utf-8") == page(), "python -m scripts.write_importers"
