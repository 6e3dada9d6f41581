"""Sampling: logits of one position to one token id.

Order: penalties, top-k, top-p, min-p, temperature, draw. Random numbers come from a counter, (seed, position), so a
conversation that was saved, restored or regenerated from the same place draws the same tokens (DESIGN section 3).
"""
