//! Credentials from every source, against real files and processes.

use super::*;

async fn key(source: Source) -> Result<String, CredentialError> {
    let credential = Credentials::new(Shape::Key, source).get().await?;
    Ok(credential.secret().expose().to_owned())
}

#[tokio::test]
async fn a_key_comes_from_a_file_a_command_or_a_shell_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, "sk-file\n").unwrap();
    assert_eq!(key(Source::File(path.clone())).await.unwrap(), "sk-file");
    let argv = ["printf", "%s\n", "sk argv"].map(str::to_owned).to_vec();
    assert!(matches!(key(Source::Command(argv)).await, Err(CredentialError::Malformed { .. })), "two words are no key");
    let argv = ["printf", "%s", "sk-$HOME"].map(str::to_owned).to_vec();
    assert_eq!(key(Source::Command(argv)).await.unwrap(), "sk-$HOME", "no shell reads an argument list");
    assert_eq!(key(Source::Shell("printf sk-; printf shell".into())).await.unwrap(), "sk-shell");
}

#[tokio::test]
async fn what_fails_says_so_without_the_text() {
    let missing = key(Source::Env("OUTLAST_NO_SUCH_VARIABLE".into())).await.unwrap_err();
    assert_eq!(missing.to_string(), "environment variable OUTLAST_NO_SUCH_VARIABLE is not set");
    let failed = key(Source::Shell("echo sk-canary; exit 3".into())).await.unwrap_err();
    assert_eq!(failed.to_string(), "key command sh: exit status: 3");
    let malformed = key(Source::Text(Secret::new("sk-canary\nsecond"))).await.unwrap_err();
    assert!(!malformed.to_string().contains("canary"));
}

#[tokio::test]
async fn a_refused_credential_is_fetched_anew_once_for_all_who_wait() {
    let dir = tempfile::tempdir().unwrap();
    let count = dir.path().join("count");
    let script = format!("echo x >> '{0}'; wc -l < '{0}'", count.display());
    let credentials = Credentials::new(Shape::Key, Source::Shell(script));
    let first = credentials.get().await.unwrap();
    assert_eq!(first.secret().expose(), "1");
    assert!(Arc::ptr_eq(&first, &credentials.get().await.unwrap()));
    let (a, b) = tokio::join!(credentials.renew(&first), credentials.renew(&first));
    assert_eq!((a.unwrap().secret().expose(), b.unwrap().secret().expose()), ("2", "2"));
}

#[tokio::test]
async fn a_codex_login_is_read_from_its_own_file() {
    let text = r#"{"OPENAI_API_KEY":null,"tokens":{"id_token":"i","access_token":"at","refresh_token":"r","account_id":"acc"}}"#;
    let login = Credentials::new(Shape::CodexLogin, Source::Text(Secret::new(text))).get().await.unwrap();
    let mut headers = HeaderMap::new();
    assert!(login.apply(Provider::OpenAi, &mut headers));
    assert_eq!(headers["authorization"], "Bearer at");
    assert_eq!(headers["chatgpt-account-id"], "acc");
}
