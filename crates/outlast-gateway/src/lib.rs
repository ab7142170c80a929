//! The HTTP gateway between agents and providers: dialects, accounts, hold, meter, ledger.
//!
//! A request in a provider's own format goes to that provider byte for byte, and so does its answer on the way back;
//! only the credential, the host, the headers of the hop and, where an account says so, the model's name change. What
//! passes is metered and recorded. The gateway knows no plan and holds no window or budget: it asks [`Admission`].

mod admission;
mod answer;
mod client;
mod clock;
mod context_window;
mod conversation;
mod credential;
mod dialect;
mod error;
mod gateway;
mod json;
mod memory;
mod meter;
mod pipeline;
mod price;
mod reckon;
mod refusal;
mod secret;
mod sse;
mod stage;
mod upstream;

pub use admission::{
    Admission, Arrived, Ask, Denied, Grant, Recorded, Refusal, RefusalKind, Repeated, Ruling, Settled, TurnKind,
};
pub use conversation::{answer_items, conversation};
pub use credential::{Credential, CredentialError, Credentials, Shape, Source};
pub use dialect::Dialect;
pub use error::Error;
pub use gateway::{Builder, Gateway, Timeouts};
pub use memory::keep_little;
pub use price::{Rate, Tariff};
pub use reckon::reckon;
pub use secret::Secret;
pub use stage::replay::recorded_request;
pub use upstream::{Provider, Upstream};
