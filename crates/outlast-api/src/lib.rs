//! The JSON views and commands that faces and scripts see.
