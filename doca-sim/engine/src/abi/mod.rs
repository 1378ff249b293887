//! The exported functions, one file per public header.

