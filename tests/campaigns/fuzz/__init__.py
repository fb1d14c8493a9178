"""Coverage-guided fuzzing of what reads bytes from outside, and the corpus that it found."""
