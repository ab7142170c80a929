//! Seeded choice: the one source of chance in a simulation, equal on every machine.
//!
//! Never a source of secrets, and never seeded from anything but the simulation's own seed.

/// A SplitMix64 generator: small, fast, and the same sequence for the same seed for ever.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    /// A generator for one purpose of one seed: different purposes do not disturb each other's sequence.
    pub(crate) const fn new(seed: u64, purpose: u64) -> Self {
        Self(seed ^ purpose.wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// The next 64 bits.
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to, but without, `end`; 0 where `end` is 0.
    pub(crate) const fn below(&mut self, end: u64) -> u64 {
        let bits = self.next();
        if end == 0 { 0 } else { bits % end }
    }

    /// A number of the range, both ends included.
    pub(crate) const fn between(&mut self, (low, high): (u64, u64)) -> u64 {
        low + self.below(high - low + 1)
    }

    /// An index into something of this length.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// True in `permille` of a thousand cases.
    pub(crate) const fn chance(&mut self, permille: u32) -> bool {
        self.below(1000) < permille as u64
    }

    /// One of the choices, which must not be empty.
    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }
}
