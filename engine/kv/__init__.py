"""KV state in memory: pages, keys, sequences, and the cache that shares them. The disk tier is `engine.store`."""
