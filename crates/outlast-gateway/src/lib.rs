//! The HTTP gateway between agents and providers: dialects, accounts, hold, meter, ledger.
