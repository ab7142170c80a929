//! News on its way from an operation to the driver: in order, but lost, doubled and late as the seed has it.

use outlast_core::admit::Command;
use outlast_core::desired::OperationKey;
use outlast_core::driver::Input;

use super::hands::HandId;
use super::{Event, Simulation};

/// News on its way to the driver.
#[derive(Debug)]
pub(super) struct Message {
    /// Who sent it, and whether this ends the operation.
    pub(super) hand: Option<(HandId, bool)>,
    pub(super) key: OperationKey,
    pub(super) command: Option<Command>,
}

/// How late a late report may be.
const LATE: (u64, u64) = (1_000, 600_000);

impl Simulation<'_> {
    /// Sends news to the driver, in order; the last of a hand may be lost, and all may come again, late.
    pub(super) fn report(&mut self, id: HandId, command: Command, last: bool) {
        let faults = self.faults().clone();
        let now = self.agenda.now();
        let Some(hand) = self.hands.get_mut(&id) else {
            return;
        };
        let command = Some(command);
        let in_flight = self.in_hand.get(&hand.key) == Some(&id);
        let mut at = hand.last_report_at.max(now) + self.rng.between((0, 20));
        if last && self.rng.chance(faults.outcome_late) {
            at += self.rng.between(LATE);
        }
        hand.last_report_at = at;
        let (key, is_heard) = (hand.key.clone(), hand.is_heard);
        if last {
            self.hands.remove(&id);
        }
        if !is_heard {
            return;
        }
        if self.rng.chance(faults.outcome_doubled) {
            let again = Message { hand: None, key: key.clone(), command: command.clone() };
            let late = self.rng.between(LATE);
            self.agenda.at(at + late, Event::Deliver(Box::new(again)));
        }
        let lost = last && in_flight && self.rng.chance(faults.outcome_lost);
        let message = Message { hand: Some((id, last)), key, command: command.filter(|_| !lost) };
        self.agenda.at(at, Event::Deliver(Box::new(message)));
    }

    /// News arrives, where anybody is there to take it.
    pub(super) fn deliver(&mut self, message: Message) {
        if self.driver.is_none() {
            return;
        }
        // Only the hand that the driver counts as in flight can return it.
        let returns = message.hand.is_some_and(|(id, last)| last && self.in_hand.get(&message.key) == Some(&id));
        self.tell(Input { command: message.command, returns: returns.then_some(message.key) });
    }
}
