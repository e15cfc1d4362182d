"""Executable papers: claims, studies, figures, and the pages they become."""
