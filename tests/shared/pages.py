"""What every page that we write must be: whole."""

import re


def assert_alone(html: str):
    """No script, no link, and every picture inside the page."""
    assert "<script" not in html
    assert "<link" not in html
    assert "@import" not in html
    sources = re.findall(r'(?:src|href)="([^"]*)"', html)
    assert sources
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not re.search(r"url\(", html)
