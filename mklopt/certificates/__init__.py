"""Certificates: two bounds around f* from any candidates, and files that prove them."""

from .certificate import Certificate, certify

__all__ = ["Certificate", "certify"]
