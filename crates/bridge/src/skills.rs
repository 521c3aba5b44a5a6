//! Owns skills: the catalogue in the prompt, and what activation reads. Takes no path from a model.
