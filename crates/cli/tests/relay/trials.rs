//! The trials: what users of such proxies suffer from, each with variations.

mod t01_oversized_error;
mod t02_output_schema;
mod t03_media;
mod t04_noise;
mod t05_unwritable;
mod t06_unknown_methods;
mod t07_http_failures;
