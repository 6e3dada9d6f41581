"""The application: `core` (conversations and turns, no Qt), `cli`, and the window around them."""
