"""Two bounds around f* from anybody's candidates, and files that prove them."""

from .certificate import Certificate, certify

__all__ = ["Certificate", "certify"]
