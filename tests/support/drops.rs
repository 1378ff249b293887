//! All that a program holds, dropped or forgotten in every order. The parts begin with the engine.

use super::{Pair, log};
use doca::ProgressEngine;
use std::any::Any;
use std::mem;

pub type Parts = Vec<Box<dyn Any>>;

/// A small generator: the same orders in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

/// Each part is first once in the first rounds.
pub fn in_any_order(everything: fn() -> Parts) {
    let mut random = Random(1);
    for round in 0..150 {
        let mut parts = everything();
        let mut order = Vec::new();
        while !parts.is_empty() {
            let next = if order.is_empty() { round % parts.len() } else { random.below(parts.len()) };
            order.push(next);
            drop(parts.swap_remove(next));
        }
        assert_eq!(log::warnings(), Vec::<String>::new(), "order {order:?}");
    }
}

pub fn while_the_engine_goes_on(everything: fn() -> Parts) {
    let mut random = Random(2);
    for _ in 0..40 {
        let mut parts = everything();
        let engine = parts.swap_remove(0).downcast::<ProgressEngine>().unwrap();
        while !parts.is_empty() {
            drop(parts.swap_remove(random.below(parts.len())));
            for _ in 0..random.below(3) {
                engine.progress().unwrap();
            }
        }
        while engine.progress().unwrap() {}
        assert_eq!(engine.in_flight().unwrap(), 0);
        drop(engine);
        assert_eq!(log::warnings(), Vec::<String>::new());
    }
}

/// What is left of them does not disturb others.
pub fn but_one_that_is_forgotten(everything: fn() -> Parts) {
    for forgotten in 0..everything().len() {
        let mut parts = everything();
        mem::forget(parts.remove(forgotten));
        drop(parts);
    }
    let mut pair = Pair::new();
    pair.exchange(b"still works");
}
