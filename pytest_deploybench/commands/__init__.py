"""The commands of `deploybench` that are more than a few lines around one room: one module each."""
