//! Owns the display of the agent's own tools: records, cards, routing, limits. It never runs anything.
