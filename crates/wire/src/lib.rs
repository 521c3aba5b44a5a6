//! MCP messages over raw bytes: lexer, scanner, codecs and protocol eras, without I/O.
