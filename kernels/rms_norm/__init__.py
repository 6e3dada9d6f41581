"""RMS normalisation, of rows and of heads."""
