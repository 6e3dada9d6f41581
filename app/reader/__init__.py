"""The page view: a document at its printed pages, with the characters an answer leans on highlighted."""
