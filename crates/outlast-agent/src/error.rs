//! Why a launch cannot be built: each variant is a different thing to put right.

use std::path::PathBuf;

/// A launch that cannot be built as the plan asks for it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An `inherit` entry is none of the known ones.
    #[error("inherit {entry:?} is unknown; it is one of memory, skills, hooks, mcp:NAME")]
    InheritUnknown {
        /// The entry as written.
        entry: String,
    },
    /// The agent's CLI has no way to inherit this.
    #[error("{kind} cannot inherit {entry}")]
    InheritUnsupported {
        /// The agent's kind.
        kind: &'static str,
        /// The entry as written.
        entry: String,
    },
    /// The repository names no such MCP server.
    #[error("inherit names the MCP server {server:?}, but {} has none of that name", file.display())]
    McpServerUnknown {
        /// The server's name.
        server: String,
        /// Where it was looked for.
        file: PathBuf,
    },
    /// A file that is to be inherited cannot be read.
    #[error("cannot read {} to inherit it: {cause}", file.display())]
    InheritRead {
        /// The file.
        file: PathBuf,
        /// What went wrong.
        cause: String,
    },
    /// What is to be inherited is larger than a home should carry.
    #[error("{} is over {limit} bytes, too large to inherit", path.display())]
    InheritTooLarge {
        /// The file or folder.
        path: PathBuf,
        /// The bound in bytes.
        limit: u64,
    },
    /// A `command` or `env` value has a placeholder that does not exist.
    #[error("unknown placeholder {{{name}}} in {text:?}; known are {known}")]
    PlaceholderUnknown {
        /// The name between the braces.
        name: String,
        /// The argument or value it is in.
        text: String,
        /// The names that exist.
        known: String,
    },
    /// An agent of kind `command` without a command.
    #[error("an agent of kind command needs `command = [\"program\", …]`")]
    CommandMissing,
    /// The program of an agent of kind `command` is not there.
    #[error("the program {program:?} is not on the PATH {path:?}")]
    ProgramMissing {
        /// The program as written.
        program: String,
        /// Where it was looked for.
        path: String,
    },
    /// An agent whose CLI is started through Node is no script.
    #[error("{} is no Node script, which this agent's CLI must be (install it from npm)", program.display())]
    ProgramNotScript {
        /// The program.
        program: PathBuf,
    },
    /// An agent whose CLI is started through Python is no script of it.
    #[error(
        "{} is no Python script, which this agent's CLI must be (install it from PyPI; the later Kimi Code CLI of the same name \
         is another program)",
        program.display()
    )]
    ProgramNotPython {
        /// The program.
        program: PathBuf,
    },
    /// An agent that has no model of its own was given none.
    #[error("an agent of kind {kind} needs a model")]
    ModelMissing {
        /// The agent's kind.
        kind: &'static str,
    },
    /// A plan sets a variable that only outlast may set.
    #[error("the variable {name} is set by outlast and cannot be set by a plan")]
    VariableReserved {
        /// The variable.
        name: String,
    },
    /// A kind of agent that cannot go on with a session was asked to.
    #[error("{kind} cannot resume a session")]
    ResumeUnsupported {
        /// The agent's kind.
        kind: &'static str,
    },
    /// A path that must be handed over as text is not valid UTF-8.
    #[error("the path {} is not valid UTF-8, which the agent's settings need", path.display())]
    PathNotText {
        /// The path.
        path: PathBuf,
    },
}
