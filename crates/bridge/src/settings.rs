//! Owns the user file: lenient reading with warnings, locked writing, the values that everything else uses.
