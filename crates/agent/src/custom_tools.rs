//! custom_tools
