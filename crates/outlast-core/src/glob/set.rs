//! Sets of characters as sorted ranges, with the separator kept apart from everything else.

/// A character, or `INVALID + byte` for a byte that is part of no character.
pub(super) type Symbol = u32;

/// The path separator.
pub(super) const SLASH: Symbol = '/' as u32;
/// First symbol past Unicode, for bytes that are no UTF-8.
const INVALID: Symbol = 0x11_0000;
const LAST: Symbol = INVALID + 0xff;

/// The symbols of a path.
pub(super) fn symbols(path: &[u8]) -> impl Iterator<Item = Symbol> {
    path.utf8_chunks().flat_map(|chunk| {
        let invalid = chunk.invalid().iter().map(|&byte| INVALID + Symbol::from(byte));
        chunk.valid().chars().map(Symbol::from).chain(invalid)
    })
}

/// A set of symbols: disjoint inclusive ranges, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Set(Vec<(Symbol, Symbol)>);

impl Set {
    /// Exactly one character.
    pub(super) fn one(c: char) -> Self {
        Self(vec![(c.into(), c.into())])
    }

    /// Every symbol, the separator included.
    pub(super) fn any() -> Self {
        Self(vec![(0, LAST)])
    }

    /// Every symbol but the separator.
    pub(super) fn not_slash() -> Self {
        Self::of_ranges(&[(SLASH, SLASH)], true)
    }

    /// A bracket expression; the separator is never in it.
    pub(super) fn class(ranges: &[(char, char)], negated: bool) -> Self {
        let mut ranges: Vec<_> = ranges.iter().map(|&(from, to)| (Symbol::from(from), Symbol::from(to))).collect();
        if negated {
            ranges.push((SLASH, SLASH));
            return Self::of_ranges(&ranges, true);
        }
        Self::of_ranges(&ranges, false).without_slash()
    }

    fn of_ranges(ranges: &[(Symbol, Symbol)], negated: bool) -> Self {
        let mut sorted = ranges.to_vec();
        sorted.sort_unstable();
        let mut merged: Vec<(Symbol, Symbol)> = Vec::new();
        for (from, to) in sorted {
            match merged.last_mut() {
                Some(last) if from <= last.1.saturating_add(1) => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        if !negated {
            return Self(merged);
        }
        let mut rest = Vec::new();
        let mut next = 0;
        for (from, to) in merged {
            if from > next {
                rest.push((next, from - 1));
            }
            next = to + 1;
        }
        if next <= LAST {
            rest.push((next, LAST));
        }
        Self(rest)
    }

    fn without_slash(self) -> Self {
        let parts = self.0.into_iter().flat_map(|(from, to)| {
            [(from, to.min(SLASH - 1)), (from.max(SLASH + 1), to)].into_iter().filter(|part| part.0 <= part.1)
        });
        Self(parts.collect())
    }

    /// Tells whether the symbol is in the set.
    pub(super) fn has(&self, symbol: Symbol) -> bool {
        self.0.iter().any(|&(from, to)| from <= symbol && symbol <= to)
    }

    /// Tells whether the two sets share a symbol that is no separator.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.0.iter().any(|a| {
            other.0.iter().any(|b| {
                let (from, to) = (a.0.max(b.0), a.1.min(b.1));
                from < to || from == to && from != SLASH
            })
        })
    }
}
