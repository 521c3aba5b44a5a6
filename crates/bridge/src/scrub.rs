//! Owns what is taken out of every text that is shown or logged: endpoints, tokens, values of key-like names.
