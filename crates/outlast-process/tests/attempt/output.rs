//! Output of any size, kept within its bounds.

use crate::support::{Bench, Test, block_on};

pub(crate) const TESTS: &[Test] = &[
    ("both_streams_are_kept_byte_for_byte", |spawner| {
        block_on(async {
            let ended = Bench::new("printf 'a\\000b\\r\\n'; printf 'no end' >&2; exit 75").run(spawner).await;
            assert_eq!(
                (ended.stdout.as_str(), ended.stderr.as_str(), ended.exit.code),
                ("a\0b\r\n", "no end", Some(75))
            );
            assert_eq!((ended.exit.stdout_bytes, ended.exit.stderr_bytes), (5, 6));
        });
    }),
    ("d16_a_five_megabyte_line_does_not_hide_the_event_after_it", |spawner| {
        block_on(async {
            let script = r#"echo '{"first":1}'; head -c 5000000 /dev/zero | tr '\0' x; echo; echo '{"result":"done"}'; sleep 600"#;
            let mut running = Bench::new(script).start(spawner).await;
            running.wrote(12 + 5_000_001 + 18).await;
            let text = running.stdout();
            let lines: Vec<_> = text.lines().collect();
            assert_eq!((lines[0], lines[2], lines.len()), (r#"{"first":1}"#, r#"{"result":"done"}"#, 3));
            assert!(lines[1].ends_with("x [outlast: 4934464 more bytes of this line not kept]"));
            running.client.kill("seen enough").await.unwrap();
            assert_eq!(running.exited().await.stdout_bytes, 5_000_031);
        });
    }),
    ("d16_an_endless_line_is_bounded_and_the_end_still_kept", |spawner| {
        block_on(async {
            let mut bench =
                Bench::new("head -c 30000000 /dev/zero | tr '\\0' x; yes | head -c 3000000; echo last words");
            bench.spec.output_limit_bytes = 300_000;
            let ended = bench.run(spawner).await;
            assert_eq!(ended.exit.stdout_bytes, 33_000_011);
            assert!(ended.stdout.len() < 301_000, "{} bytes were kept", ended.stdout.len());
            assert!(ended.stdout.ends_with("y\ny\nlast words\n"));
            assert!(ended.stdout.contains("the limit of 300000 bytes is reached"));
        });
    }),
];
