//! `outlast completions` and `outlast man`: generated from the arguments themselves.

use clap::CommandFactory as _;
use outlast_api::{Diagnostic, ExitCode};

use crate::args::Args;
use crate::commands::print;
use crate::failure::Failure;

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "outlast", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::Ok)
}

pub(crate) fn man() -> Result<ExitCode, Failure> {
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(Args::command()).render(&mut page);
    rendered
        .map_err(|error| Failure::from(Diagnostic::error("outlast/defect", ExitCode::Defect, error.to_string())))?;
    print(&String::from_utf8_lossy(&page))?;
    Ok(ExitCode::Ok)
}
