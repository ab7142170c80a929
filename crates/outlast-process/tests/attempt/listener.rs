//! The program's end of the line: bytes pass unchanged, and a missing gateway is only a wait.

use std::time::Duration;

use outlast_process::{Event, ExitReason, HoldProfile, Spawner};
use tokio::net::UnixListener;

use crate::support::{Bench, Running, Test, block_on};
use crate::upstream::{Caller, listener_to, take};

pub(crate) const TESTS: &[Test] = &[
    ("bytes_pass_unchanged_both_ways", |spawner| {
        block_on(async {
            let line = Line::open(spawner, HoldProfile::default()).await;
            let gateway = line.bind();
            let mut caller = Caller::dial(line.port()).await;
            caller.say("POST /v1/x?b=%20c&a HTTP/1.1\r\nHost: 127.0.0.1:1\r\nX-ODD-Case: A  b\r\nTwo: 1\r\nTwo: 2\r\nContent-Length: 4\r\n\r\n\0a\r\n").await;
            let mut taken = take(&gateway).await;
            let expected = "POST /a/k1/v1/x?b=%20c&a HTTP/1.1\r\nHost: 127.0.0.1:1\r\nX-ODD-Case: A  b\r\nTwo: 1\r\nTwo: 2\r\nContent-Length: 4\r\nx-outlast-request: 1";
            assert_eq!((taken.head.as_str(), taken.body.as_slice()), (expected, b"\0a\r\n".as_slice()));
            let answer = "HTTP/1.1 418 I'm a teapot\r\nX-Ratelimit-Reset: 7\r\nrequest-ID: q\r\nContent-Length: 5\r\n\r\n\r\n\0\n{";
            taken.say(answer).await;
            assert_eq!(caller.hear_until("{").await, answer);

            // The same connection serves the next request; a HEAD has a length and no body.
            caller.say("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n").await;
            let mut taken = take(&gateway).await;
            assert!(taken.head.starts_with("HEAD /a/k1/ HTTP/1.1\r\n") && taken.id() == 2, "{}", taken.head);
            taken.say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n").await;
            assert_eq!(caller.hear_until("\r\n\r\n").await, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
        });
    }),
    ("an_answer_streams_as_it_comes", |spawner| {
        block_on(async {
            let line = Line::open(spawner, HoldProfile::default()).await;
            let gateway = line.bind();
            let mut caller = Caller::post(line.port(), "{}").await;
            let mut taken = take(&gateway).await;
            taken.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n").await;
            // The second event is sent only after the first was heard.
            caller.hear_until("data: 1\n\n\r\n").await;
            taken.say("9\r\ndata: 2\n\n\r\n0\r\n\r\n").await;
            assert_eq!(caller.hear_until("0\r\n\r\n").await, "9\r\ndata: 2\n\n\r\n0\r\n\r\n");
        });
    }),
    ("a_request_waits_for_a_gateway_that_is_not_there_yet", |spawner| {
        block_on(async {
            let mut line = Line::open(spawner, HoldProfile::default()).await;
            let mut caller = Caller::post(line.port(), "kept").await;
            line.running.next(|event| matches!(event, Event::RequestStarted { id: 1 }).then_some(())).await;
            let gateway = line.bind();
            let taken = take(&gateway).await;
            assert_eq!(taken.body, b"kept");
            taken.answer("once").await;
            assert!(caller.hear_until("once").await.starts_with("HTTP/1.1 200 OK\r\n"));
            let steps = [line.next_step().await, line.next_step().await];
            assert_eq!(steps, [Event::AnswerBegun { id: 1 }, Event::RequestEnded { id: 1 }]);
            // Answered exactly once: nothing else has knocked.
            let more = tokio::time::timeout(Duration::from_millis(100), gateway.accept()).await;
            assert!(more.is_err());
        });
    }),
    ("a_gateway_killed_before_the_answer_is_asked_again_when_it_is_back", |spawner| {
        block_on(async {
            let line = Line::open(spawner, HoldProfile::default()).await;
            let gateway = line.bind();
            let mut caller = Caller::post(line.port(), "again").await;
            let first = take(&gateway).await;
            let id = first.id();
            // Dead with the request in hand; its socket file stays behind.
            drop((first, gateway));
            let gateway = line.bind();
            let second = take(&gateway).await;
            assert_eq!((second.id(), second.body.as_slice()), (id, b"again".as_slice()));
            second.answer("done").await;
            caller.hear_until("done").await;
        });
    }),
    ("a_cut_answer_is_a_cut_answer", |spawner| {
        block_on(async {
            let line = Line::open(spawner, HoldProfile::default()).await;
            let gateway = line.bind();
            let mut caller = Caller::post(line.port(), "{}").await;
            let mut taken = take(&gateway).await;
            taken.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n").await;
            caller.hear_until("half\r\n").await;
            drop(taken);
            assert_eq!(caller.hear_all().await, "", "no closing chunk that would make it look whole");
        });
    }),
    ("a_program_that_hangs_up_takes_its_request_with_it", |spawner| {
        block_on(async {
            let mut line = Line::open(spawner, HoldProfile::default()).await;
            let gateway = line.bind();
            let caller = Caller::post(line.port(), "{}").await;
            let taken = take(&gateway).await;
            assert_eq!(line.next_step().await, Event::RequestStarted { id: 1 });
            drop(caller);
            taken.hung_up().await;
            assert_eq!(line.next_step().await, Event::RequestEnded { id: 1 });
        });
    }),
    ("a_long_wait_is_filled_with_the_profiles_own_words", |spawner| {
        block_on(async {
            let line = Line::open(spawner, speaking()).await;
            let gateway = line.bind();
            let mut caller = Caller::post(line.port(), r#"{"stream":true}"#).await;
            let mut taken = take(&gateway).await;
            let heard = caller.hear_until(": ping\n\n\r\n").await;
            assert_eq!(
                heard,
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n\
                 9\r\n: hello\n\n\r\n8\r\n: ping\n\n\r\n"
            );
            taken.say("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ndata: 1\n\n").await;
            let rest = caller.hear_until("0\r\n\r\n").await;
            assert!(rest.ends_with("9\r\ndata: 1\n\n\r\n0\r\n\r\n"), "{rest}");

            // What is not for a stream waits without a byte, and gets the real status.
            let mut caller = Caller::post(line.port(), "{}").await;
            let mut taken = take(&gateway).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            taken.say("HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\nno").await;
            assert_eq!(caller.hear_until("no").await, "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\nno");
        });
    }),
    ("a_refusal_after_the_preamble_cuts_the_connection", |spawner| {
        block_on(async {
            let line = Line::open(spawner, speaking()).await;
            let gateway = line.bind();
            let mut caller = Caller::post(line.port(), r#"{"stream":true}"#).await;
            let mut taken = take(&gateway).await;
            caller.hear_until(": hello\n\n\r\n").await;
            taken.say("HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\nno").await;
            let rest = caller.hear_all().await;
            assert!(!rest.contains("no") && !rest.ends_with("0\r\n\r\n"), "{rest}");
        });
    }),
    ("an_answer_wanted_whole_is_asked_again_when_it_breaks_off", |spawner| {
        block_on(async {
            let mut line = Line::open(spawner, HoldProfile { buffer_whole: true, ..HoldProfile::default() }).await;
            let gateway = line.bind();
            let mut caller = Caller::post(line.port(), "{}").await;
            let mut taken = take(&gateway).await;
            taken.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n").await;
            drop(taken);
            let mut taken = take(&gateway).await;
            taken.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nwh\r\n3\r\nole\r\n0\r\n\r\n").await;
            let heard = caller.hear_until("0\r\n\r\n").await;
            assert_eq!(heard, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nwh\r\n3\r\nole\r\n0\r\n\r\n");
            let mut steps = Vec::new();
            while steps.last() != Some(&Event::RequestEnded { id: 1 }) {
                steps.push(line.next_step().await);
            }
            let expected = [
                Event::RequestStarted { id: 1 },
                Event::AnswerBegun { id: 1 },
                Event::AnswerLost { id: 1 },
                Event::AnswerBegun { id: 1 },
                Event::RequestEnded { id: 1 },
            ];
            assert_eq!(steps, expected);
        });
    }),
    ("time_stands_still_while_a_request_waits", |spawner| {
        block_on(async {
            let mut bench = Bench::new("sleep 600");
            bench.spec.timeouts.wall = Some(Duration::from_millis(400));
            bench.spec.timeouts.idle = Some(Duration::from_millis(400));
            let mut line = Line::start(spawner, bench, HoldProfile::default()).await;
            let gateway = line.bind();
            let mut caller = Caller::post(line.port(), "{}").await;
            let taken = take(&gateway).await;
            tokio::time::sleep(Duration::from_millis(1200)).await;
            taken.answer("late").await;
            caller.hear_until("late").await;
            assert_eq!(line.next_step().await, Event::RequestStarted { id: 1 });
            assert_eq!(line.next_step().await, Event::AnswerBegun { id: 1 });
            // The clock runs again and strikes.
            let exit = line.running.exited().await;
            assert_eq!(exit.reason, ExitReason::WallTimeout);
            assert!(exit.ended_at - exit.started_at >= 1500, "{exit:?}");
        });
    }),
    ("a_half_sent_request_does_not_stop_the_clock", |spawner| {
        block_on(async {
            let mut bench = Bench::new("sleep 600");
            bench.spec.timeouts.idle = Some(Duration::from_millis(300));
            let mut line = Line::start(spawner, bench, HoldProfile::default()).await;
            let mut caller = Caller::dial(line.port()).await;
            caller.say("POST / HTTP/1.1\r\nHost: h\r\ncontent-length: 10\r\n\r\nhalf").await;
            assert_eq!(line.running.exited().await.reason, ExitReason::IdleTimeout);
        });
    }),
    ("the_program_ends_when_its_listener_is_lost", |spawner| {
        block_on(async {
            let mut line = Line::open(spawner, HoldProfile::default()).await;
            let _caller = Caller::post(line.port(), "{}").await;
            assert_eq!(line.next_step().await, Event::RequestStarted { id: 1 });
            let children =
                std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", line.running.shim.pid)).unwrap();
            let listener = children
                .split_whitespace()
                .find(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap() == "outlast-listen\n");
            let listener = nix::unistd::Pid::from_raw(listener.unwrap().parse().unwrap());
            nix::sys::signal::kill(listener, nix::sys::signal::Signal::SIGKILL).unwrap();
            assert_eq!(line.running.exited().await.reason, ExitReason::ListenerLost);
        });
    }),
];

fn speaking() -> HoldProfile {
    HoldProfile {
        headers_wait: Some(Duration::from_millis(30)),
        preamble: ": hello\n\n".to_owned(),
        keep_alive: ": ping\n\n".to_owned(),
        period: Duration::from_millis(30),
        stream_marks: vec![r#""stream":true"#.to_owned()],
        buffer_whole: false,
    }
}

/// A launch whose program sleeps while the test speaks in its place.
struct Line {
    running: Running,
}

impl Line {
    async fn open(spawner: &Spawner, hold: HoldProfile) -> Self {
        Self::start(spawner, Bench::new("sleep 600"), hold).await
    }

    async fn start(spawner: &Spawner, mut bench: Bench, hold: HoldProfile) -> Self {
        let mut listener = listener_to(&bench.folder().join("gateway"));
        listener.hold = hold;
        bench.spec.listener = Some(listener);
        Self { running: bench.start(spawner).await }
    }

    fn port(&self) -> u16 {
        self.running.state.shim.port.unwrap()
    }

    /// Makes the gateway appear, as an engine does at its start.
    fn bind(&self) -> UnixListener {
        let socket = &self.running.spec.listener.as_ref().unwrap().upstream_socket;
        match std::fs::remove_file(socket) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
            _ => UnixListener::bind(socket).unwrap(),
        }
    }

    /// The next step of a request.
    async fn next_step(&mut self) -> Event {
        self.running
            .next(|event| (!matches!(event, Event::Output { .. } | Event::State(_))).then(|| event.clone()))
            .await
    }
}
