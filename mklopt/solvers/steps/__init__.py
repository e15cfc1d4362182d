"""Parts that several algorithms share. Nothing here is registered as a solver."""
