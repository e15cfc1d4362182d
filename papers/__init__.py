"""Five papers on multiple kernel learning, executable: `mklopt paper KEY`."""
