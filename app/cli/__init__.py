"""The command line: thin over app.core, no Qt. Every command takes --json and prints one object then."""
