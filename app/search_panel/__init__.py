"""The Search tab: what was looked up for a question, and trying a query without the model."""
