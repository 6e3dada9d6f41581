"""Reading PDFs: text with PDFium character indices, outline, labels. PDFium runs in a child process only."""
