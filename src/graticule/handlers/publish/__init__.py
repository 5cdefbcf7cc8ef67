"""Copies for the public: made of what is approved, and removed again."""
