"""What follows from a declaration: epigraphs, conic programs, sorted sums."""
