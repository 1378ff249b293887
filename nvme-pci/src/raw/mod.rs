//! Memory that a device touches.

mod bar;
mod dma;

pub use bar::Bar;
pub(crate) use bar::Registers;
pub use dma::{DmaBuffer, Mapper};
