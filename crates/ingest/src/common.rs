//! Parts that several listeners share: budgets that fill again (`refill`), tasks with a limited frequency (`rhythm`), the
//! memory of reported losses (`reported`), clients with a thread each (`seats`), and for protocols of lines the loop with its sockets (`line_server`,
//! `line_clients`), counts of refused lines (`troubles`), limits of series (`series_limit`) and a quick hash (`keyed_hash`).

pub(crate) mod keyed_hash;
mod line_accounts;
mod line_clients;
mod line_listener;
pub(crate) mod line_server;
pub(crate) mod refill;
mod reported;
pub(crate) mod rhythm;
pub(crate) mod seats;
pub(crate) mod sender_lots;
pub(crate) mod series_limit;
pub(crate) mod troubles;

pub use line_accounts::LineAccounts;
pub use line_listener::{LineListener, LineSettings, NumberSetting};
pub use line_server::LineSockets;
pub use reported::Reported;
