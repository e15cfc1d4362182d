"""The inner problem at fixed kernel weights: SVMs, smooth losses, several classes."""
