"""What belongs to the window as a whole: status bar, window state, trash, crash log."""
