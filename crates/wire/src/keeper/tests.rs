use super::*;
use crate::collectd::Severity;
use kymo_base::label_set::Labels;

fn requests() -> Vec<KeeperRequest> {
    let matcher = |text| Matcher::parse(text).expect("a matcher");
    vec![
        KeeperRequest::Select(Vec::new()),
        KeeperRequest::Select(vec![
            matcher("host=web*"),
            matcher("plugin!=cpu"),
            matcher("idle"),
        ]),
        KeeperRequest::Range(Range {
            names: vec![b"a.rrd".to_vec(), b"b/c \xff.rrd".to_vec()],
            from: -5,
            thru: 1 << 40,
            rows_max: 600,
        }),
        KeeperRequest::Erase(Erased {
            names: vec![b"a.rrd".to_vec()],
            from: -5,
            thru: 1 << 40,
        }),
        KeeperRequest::Accounts,
        KeeperRequest::Events(EventRange::default()),
        KeeperRequest::Events(EventRange {
            from: -1,
            thru: 1 << 33,
            events_max: 100,
            hosts: vec![b"web1".to_vec(), b"\xff".to_vec()],
        }),
        KeeperRequest::Define(vec![LabelledSeries {
            labels: labels("cpu.user"),
            step: 10,
            heartbeat: 120,
            start: 1_000_000_000,
            columns: vec![(b"value".to_vec(), b"GAUGE".to_vec())],
        }]),
        KeeperRequest::Write(vec![
            LabelledValues {
                labels: labels("cpu.user"),
                stamps_ms: vec![1_000_000_000_000, 1_000_000_010_500],
                cells: vec![1.5, -0.0, 0.25, f64::INFINITY],
            },
            LabelledValues {
                labels: labels("cpu.sys"),
                stamps_ms: Vec::new(),
                cells: Vec::new(),
            },
        ]),
        KeeperRequest::Create(vec![FileSeries {
            name: b"mrtg/core/r1_1.rrd".to_vec(),
            step: 300,
            start: 1_000_000_000,
            points_kept_s: 93 * 86_400,
            words: vec![
                b"DS:ds0:COUNTER:600:0:U".to_vec(),
                b"RRA:MAX:0.5:1:9".to_vec(),
            ],
        }]),
        KeeperRequest::Update(FileValues::default()),
        KeeperRequest::Update(file_values()),
        KeeperRequest::Notify(Vec::new()),
        KeeperRequest::Notify(vec![event(), event()]),
        KeeperRequest::Find(find()),
        KeeperRequest::Samples(SamplesOf {
            row_value: 4,
            rows_before: 2,
            ids: vec![7, u64::MAX],
            from_ms: -5,
            thru_ms: i64::MAX,
            samples_max: 1000,
        }),
        KeeperRequest::Labels(LabelsOf {
            label: "mode".into(),
            find: find(),
        }),
        KeeperRequest::Remove(Vec::new()),
        KeeperRequest::Remove(vec![b"a.rrd".to_vec(), b"b/c \xff.rrd".to_vec()]),
        tail_after(TailPlace::Position(u64::MAX)),
        tail_after(TailPlace::Now),
        tail_after(TailPlace::Oldest),
        KeeperRequest::Lines,
        KeeperRequest::EndTail("forward".into()),
        KeeperRequest::Tails,
        KeeperRequest::Pin,
        KeeperRequest::Unpin(1 << 40),
        KeeperRequest::Import(Import {
            changes: true,
            of_kymo: true,
            series: vec![
                ImportedSeries {
                    name: b"web1/cpu-0/cpu-idle.rrd".to_vec(),
                    file: vec![0, 255],
                },
                ImportedSeries::default(),
            ],
            points: vec![
                ImportedPoints {
                    labels: labels("a"),
                    kind: Some(PointKind::Gauge),
                    stamps_ms: vec![-1, 1 << 40],
                    values: vec![0.5, -0.0],
                    rows: vec![ImportedRow {
                        step_s: 300,
                        end_s: 1_700_000_100,
                        cells: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
                    }],
                },
                ImportedPoints {
                    labels: labels("b"),
                    kind: None,
                    stamps_ms: Vec::new(),
                    values: Vec::new(),
                    rows: Vec::new(),
                },
            ],
        }),
        KeeperRequest::Push(Push {
            format: PushFormat::Otlp,
            sender: "192.0.2.7".into(),
            body: vec![0, 255],
        }),
        KeeperRequest::Pushers,
        KeeperRequest::Families {
            metric: String::new(),
        },
        KeeperRequest::Families {
            metric: "up".into(),
        },
        KeeperRequest::Push(Push {
            format: PushFormat::Scrape,
            sender: "http://localhost:9100/metrics".into(),
            body: Vec::new(),
        }),
        KeeperRequest::Scraped(scraped()),
        KeeperRequest::Targets,
        KeeperRequest::Forwarded(receivers()),
        KeeperRequest::Receivers,
    ]
}

fn receivers() -> Vec<ReceiverAccount> {
    let account = ReceiverAccount {
        name: "central".into(),
        sent: 1 << 40,
        refused: 2,
        missed: 3,
        requests: 4,
        failed: 5,
        bytes: 6,
        is_up: true,
        backlog_bytes: 7,
        backlog_age_s: 0.5,
    };
    vec![account, ReceiverAccount::default()]
}

fn scraped() -> Vec<ScrapedTarget> {
    let target = ScrapedTarget {
        job: "node".into(),
        url: "http://localhost:9100/metrics".into(),
        labels: vec![("instance".into(), "localhost:9100".into())],
        interval_ms: 15_000,
        timeout_ms: 10_000,
        scraped_ms: 1_700_000_000_000,
        duration_s: 0.25,
        samples: 700,
        error: "cannot connect: Connection refused".into(),
    };
    vec![target, ScrapedTarget::default()]
}

fn tail_after(from: TailPlace) -> KeeperRequest {
    KeeperRequest::Tail(TailAfter {
        name: "forward".into(),
        from,
        bytes_max: 4 << 20,
        wait_ms: 10_000,
    })
}

fn tail_piece() -> TailPiece {
    let sample = |series, column, t_ms, v| NumberedSample {
        series,
        column,
        t_ms,
        v,
    };
    let column = DefinedColumn {
        name: b"rx".to_vec(),
        kind: b"DERIVE".to_vec(),
        labels: Some(labels("cpu.user")),
    };
    let missed = |values| MissedPart {
        from: 5,
        to: 1 << 40,
        values,
    };
    TailPiece {
        position: 1 << 41,
        events: vec![
            TailEvent::Defined(DefinedSeries::default()),
            TailEvent::Defined(DefinedSeries {
                series: 7,
                name: b"a \xff.rrd".to_vec(),
                kind: Some(PointKind::Histogram),
                step_s: 10,
                heartbeat_s: 60,
                columns: vec![column, DefinedColumn::default()],
            }),
            TailEvent::Samples(vec![
                sample(7, 0, 1_000_000_000_000, 0.5),
                sample(7, 1, 1_000_000_000_000, f64::INFINITY),
                sample(u32::MAX, u16::MAX, i64::MIN, -0.0),
                sample(0, 0, i64::MAX, 1e300),
            ]),
            TailEvent::Samples(Vec::new()),
            TailEvent::Missed(missed(Some(0))),
            TailEvent::Missed(missed(None)),
            TailEvent::Gone(7),
        ],
    }
}

fn find() -> Find {
    let ops = [
        MatchOp::Equal,
        MatchOp::NotEqual,
        MatchOp::Matches,
        MatchOp::NotMatches,
    ];
    Find {
        matchers: ops
            .map(|op| LabelMatcher {
                label: "__name__".into(),
                op,
                value: "up|\u{e4}".into(),
            })
            .to_vec(),
        from_ms: i64::MIN,
        thru_ms: 5,
        series_max: u64::MAX,
    }
}

fn file_values() -> FileValues {
    let mut values = FileValues::default();
    assert!(values.push(b"a.rrd", &[b"1:2:U", b"2.5:18446744073709551616:4"]));
    assert!(values.push(b"b.rrd", &[]));
    values
}

#[test]
fn values_of_files_come_back_in_their_order() {
    let values = file_values();
    let all = values
        .iter()
        .map(|(name, arguments)| (name, arguments.collect()));
    let all: Vec<(&[u8], Vec<&[u8]>)> = all.collect();
    let first: [&[u8]; 2] = [b"1:2:U", b"2.5:18446744073709551616:4"];
    assert_eq!(all, [(&b"a.rrd"[..], first.to_vec()), (b"b.rrd", vec![])]);
    let mut many = FileValues::default();
    while many.push(&[b'n'; 1000], &[&[b'1'; 1000]]) {}
    let frame = KeeperRequest::Update(many.clone()).frame();
    assert!(many.len() > 500 && frame.len() <= HEAD + QUESTION_MAX);
    many.clear();
    while many.push(b"n", &[b"1:1"]) {}
    assert_eq!(many.len(), 4096);
    assert!(KeeperRequest::read(&KeeperRequest::Update(many).frame()[HEAD..]).is_ok());
}

fn labels(field: &str) -> Labels {
    Labels::new([("field", field.as_bytes()), ("host", b"web1")]).expect("a set")
}

fn event() -> Event {
    Event {
        time_ns: 1_000_000_000,
        severity: Severity::Warning,
        host: b"web1".to_vec(),
        plugin: b"df".to_vec(),
        plugin_instance: b"root".to_vec(),
        type_name: Vec::new(),
        type_instance: Vec::new(),
        message: b"is 3".to_vec(),
    }
}

fn accounts() -> Accounts {
    let mut counts = Counts::default();
    for (at, count) in Count::ALL.into_iter().enumerate() {
        counts += (count, 1 << at);
    }
    let sender = |address: Option<&str>| SenderAccount {
        address: address.map(|text| text.parse().expect("an address")),
        age_s: 0.5,
        offset_s: -3600.25,
        counts,
    };
    let host = HostAccount {
        host: b"web1".to_vec(),
        address: sender(Some("::1")).address,
        age_s: 3.0,
        gap_s: 10.0,
        offset_s: 0.25,
        rate: 7.0,
        values: 70,
    };
    Accounts {
        sockets: vec![
            SocketAccount {
                name: b"127.0.0.1:25826".to_vec(),
                lost: 7,
                senders: [None, Some("192.0.2.1"), Some("2001:db8::1")]
                    .map(sender)
                    .to_vec(),
            },
            SocketAccount::default(),
        ],
        hosts: vec![host],
        types: vec![OddType {
            name: b"own".to_vec(),
            series: b"web1/own/own.rrd".to_vec(),
            known: 0,
            came: 3,
        }],
    }
}

fn answers() -> Vec<Answer> {
    let series = SeriesInfo {
        name: b"web1/cpu-0/cpu-idle.rrd".to_vec(),
        last: 1e9 + 0.25,
        step: 10,
        columns: vec![(b"value".to_vec(), b"DERIVE".to_vec())],
    };
    let rows = Rows {
        start: 1_000_000_000,
        step: 10,
        columns: vec![b"rx".to_vec(), b"tx".to_vec()],
        mean: vec![1.0, 2.0, 3.0, 4.5],
        ..Rows::default()
    };
    let spread = Rows {
        min: rows.mean.clone(),
        max: rows.mean.clone(),
        ..rows.clone()
    };
    vec![
        Answer::Series(Vec::new(), false),
        Answer::Series(vec![series, SeriesInfo::default()], true),
        Answer::Rows(rows),
        Answer::Rows(spread),
        Answer::Accounts(Accounts::default()),
        Answer::Accounts(accounts()),
        Answer::Events(Vec::new()),
        Answer::Events(vec![event(), event()]),
        Answer::Found(Vec::new(), false),
        Answer::Found(
            vec![FoundSeries {
                id: 1 << 40,
                labels: labels("cpu.user"),
            }],
            true,
        ),
        Answer::Samples(SamplesPiece::default(), false),
        Answer::Samples(
            SamplesPiece {
                id: 7,
                resolution_s: 10,
                samples: vec![
                    (i64::MIN, 0.5),
                    (-5, f64::INFINITY),
                    (1_000_000_000_000, -0.0),
                    (i64::MAX, 1e300),
                ],
            },
            true,
        ),
        Answer::Labels(vec!["job".into(), "\u{e4}".into()], false),
        Answer::Tailed(TailPiece::default(), false),
        Answer::Tailed(tail_piece(), true),
        Answer::Lines(vec![
            LineAccount::default(),
            LineAccount {
                protocol: b"statsd".to_vec(),
                clients: 3,
                datagrams: 1 << 40,
                samples: 1 << 41,
                refused: vec![(b"no name".to_vec(), 7), (b"dropped".to_vec(), 9)],
            },
        ]),
        Answer::Imported(vec![
            Imported {
                is_new: true,
                added: 1 << 40,
                differing: 3,
                why: String::new(),
            },
            Imported {
                why: "it is given twice".into(),
                ..Imported::default()
            },
        ]),
        Answer::Pinned(
            7,
            vec![
                PinnedPart {
                    name: b"segment-000000001-000000001-0".to_vec(),
                    bytes: 1 << 33,
                    kind: PinnedKind::Sealed,
                },
                PinnedPart {
                    name: b"web1/\xff.rrd".to_vec(),
                    bytes: 0,
                    kind: PinnedKind::Rrd,
                },
                PinnedPart::default(),
            ],
            true,
        ),
        Answer::Missing("a store is away".into()),
        Answer::Tails(vec![TailAccount {
            name: "forward".into(),
            position: 4096,
            backlog_bytes: 100,
            backlog_age_s: 2.5,
            missed_values: 7,
        }]),
        Answer::Done,
        Answer::Taken(Taken::default()),
        Answer::Taken(Taken {
            began: 1,
            changed: 2,
            refused: vec![Refused {
                place: 3,
                fault: Fault::Missing,
                why: "there is no such series".into(),
            }],
        }),
        Answer::Pushed(PushResult {
            status: 400,
            samples: 1 << 40,
            refused: 2,
            why: "1 x a sample".into(),
        }),
        Answer::Pushers(vec![PushAccount {
            protocol: "otlp".into(),
            sender: "192.0.2.7".into(),
            age_s: 0.5,
            requests: 1,
            samples: 2,
            series: 3,
            refused: vec![("a sample".into(), 4)],
        }]),
        Answer::Targets(scraped()),
        Answer::Receivers(receivers()),
        Answer::Families(vec![MetricFamily {
            metric: "up".into(),
            kind: "gauge".into(),
            unit: String::new(),
            help: "Ü".into(),
        }]),
        Answer::Refused("cannot read a.rrd: no such file".into()),
    ]
}

#[test]
fn frames_come_back() {
    for request in requests() {
        let frame = request.frame();
        let head = frame[..HEAD].try_into().expect("a head");
        assert_eq!(body_bytes(head, QUESTION_MAX), Ok(frame.len() - HEAD));
        assert_eq!(KeeperRequest::read(&frame[HEAD..]), Ok(request));
    }
    for answer in answers() {
        assert_eq!(Answer::read(&answer.frame()[HEAD..]), Ok(answer));
    }
}

/// The bytes are those of docs/formats/keeper.md.
#[test]
fn bytes_are_as_the_document_says() {
    let matcher = Matcher::parse("host=web*").expect("a matcher");
    let frame = KeeperRequest::Select(vec![matcher]).frame();
    assert_eq!(frame, b"\x11\0\0\0\x04\x01\x01\0\x04\0host\0\x04\0web*");
    let frame = Answer::Refused("no".into()).frame();
    assert_eq!(frame, b"\x06\0\0\0\x04\xff\x02\0no");
    let frame = KeeperRequest::Accounts.frame();
    assert_eq!(frame, b"\x02\0\0\0\x04\x03");
    let frame = Answer::Events(vec![event()]).frame();
    assert_eq!(
        frame,
        b"\x29\0\0\0\x04\x84\x01\0\0\0\0\xca\x9a\x3b\0\0\0\0\x02\x04\0web1\x02\0df\x04\0root\0\0\0\0\x04\0is 3"
    );
    let frame = KeeperRequest::Remove(vec![b"a.rrd".to_vec()]).frame();
    assert_eq!(frame, b"\x0b\0\0\0\x04\x07\x01\0\x05\0a.rrd");
    assert_eq!(Answer::Done.frame(), b"\x02\0\0\0\x04\x85");
    let frame = KeeperRequest::Notify(vec![event()]).frame();
    assert_eq!(
        frame,
        b"\x27\0\0\0\x04\x0a\x01\0\0\xca\x9a\x3b\0\0\0\0\x02\x04\0web1\x02\0df\x04\0root\0\0\0\0\x04\0is 3"
    );
}

#[test]
fn what_is_cut_or_longer_is_refused() {
    let frames = requests().into_iter().map(|request| request.frame());
    for frame in frames {
        for end in HEAD..frame.len() {
            assert!(KeeperRequest::read(&frame[HEAD..end]).is_err());
        }
        assert!(KeeperRequest::read(&[&frame[HEAD..], b"x"].concat()).is_err());
    }
    for answer in answers() {
        let frame = answer.frame();
        for end in HEAD..frame.len() {
            let cut = Answer::read(&frame[HEAD..end]);
            // A piece of a tail has no count of its events: a frame that is cut off behind an event is a shorter
            // piece.
            let is_shorter = matches!((&answer, &cut), (Answer::Tailed(whole, _), Ok(Answer::Tailed(cut, _)))
                if whole.events.starts_with(&cut.events));
            assert!(cut.is_err() || is_shorter, "{answer:?} {cut:?}");
        }
        assert!(Answer::read(&[&frame[HEAD..], b"x"].concat()).is_err());
    }
    assert_eq!(
        KeeperRequest::read(&[1, 1]),
        Err("is of another version of kymo")
    );
    assert_eq!(
        KeeperRequest::read(&[VERSION, 99]),
        Err("is of an unknown kind")
    );
    assert_eq!(body_bytes([1, 0, 0, 0], 100), Err("has no kind"));
    assert_eq!(body_bytes([101, 0, 0, 0], 100), Err("is too long"));
}

#[test]
fn counts_have_names_and_places_of_their_own() {
    let counts = accounts().sockets[0].senders[0].counts;
    for (at, count) in Count::ALL.into_iter().enumerate() {
        assert_eq!(counts[count], 1 << at, "{}", count.name());
    }
    let mut names = Count::ALL.map(Count::name);
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn an_event_is_named_picked_and_read_alone() {
    let mut bytes = Vec::new();
    event().put(&mut bytes);
    assert_eq!(Event::read(&bytes), Some(event()));
    assert_eq!(Event::read(&[&bytes[..], b"x"].concat()), None);
    for end in 0..bytes.len() {
        assert_eq!(Event::read(&bytes[..end]), None);
    }
    let no_such_severity = [&bytes[..8], &[3], &bytes[9..]].concat();
    assert_eq!(Event::read(&no_such_severity), None);
    assert_eq!(event().name(), b"web1/df-root");
    for (from, thru, host, is_one) in [
        (1, 2, None, true),
        (0, 1, None, false),
        (2, 9, None, false),
        (0, 9, Some("web1"), true),
        (0, 9, Some("web2"), false),
    ] {
        let range = EventRange {
            from,
            thru,
            events_max: 1,
            hosts: host.iter().map(|host| host.as_bytes().to_vec()).collect(),
        };
        assert_eq!(range.has(&event()), is_one, "{range:?}");
    }
}

/// A false count allocates nothing.
#[test]
fn counts_are_not_believed() {
    let rows = [
        &[VERSION, 0x82][..],
        &[0; 8],
        &[10, 0, 0, 0],
        &[0],
        &[1, 0, 1, 0, b'a'],
        &[0xff; 4],
    ];
    assert_eq!(Answer::read(&rows.concat()), Err("is cut short"));
    for kind in [0x83, 0x84] {
        let frame = [&[VERSION, kind][..], &[0xff; 4]].concat();
        assert_eq!(Answer::read(&frame), Err("is cut short"));
    }
    let series = [&[VERSION, 0x81, 0][..], &[0xff; 4]];
    assert_eq!(Answer::read(&series.concat()), Err("is cut short"));
}

/// The seeds of fuzzing can be read.
#[test]
fn the_corpus_can_be_read() {
    let accounts = include_bytes!("../../../../tests/corpus/keeper_accounts.bin");
    assert!(matches!(Answer::read(accounts), Ok(Answer::Accounts(_))));
    let events = include_bytes!("../../../../tests/corpus/keeper_events.bin");
    assert!(matches!(Answer::read(events), Ok(Answer::Events(_))));
    let select = include_bytes!("../../../../tests/corpus/keeper_ask_select.bin");
    assert!(matches!(
        KeeperRequest::read(select),
        Ok(KeeperRequest::Select(_))
    ));
    let define = include_bytes!("../../../../tests/corpus/keeper_define.bin");
    assert!(matches!(
        KeeperRequest::read(define),
        Ok(KeeperRequest::Define(_))
    ));
    let write = include_bytes!("../../../../tests/corpus/keeper_write.bin");
    assert!(matches!(
        KeeperRequest::read(write),
        Ok(KeeperRequest::Write(_))
    ));
    let request = include_bytes!("../../../../tests/corpus/keeper_ask_events.bin");
    assert!(matches!(
        KeeperRequest::read(request),
        Ok(KeeperRequest::Events(_))
    ));
    let create = include_bytes!("../../../../tests/corpus/keeper_create.bin");
    assert!(matches!(
        KeeperRequest::read(create),
        Ok(KeeperRequest::Create(_))
    ));
    let update = include_bytes!("../../../../tests/corpus/keeper_update.bin");
    assert!(matches!(
        KeeperRequest::read(update),
        Ok(KeeperRequest::Update(_))
    ));
    let tail = include_bytes!("../../../../tests/corpus/keeper_ask_tail.bin");
    assert!(matches!(
        KeeperRequest::read(tail),
        Ok(KeeperRequest::Tail(_))
    ));
    let tailed = include_bytes!("../../../../tests/corpus/keeper_tailed.bin");
    assert!(matches!(Answer::read(tailed), Ok(Answer::Tailed(_, true))));
    let tails = include_bytes!("../../../../tests/corpus/keeper_tails.bin");
    assert!(matches!(Answer::read(tails), Ok(Answer::Tails(_))));
    let notify = include_bytes!("../../../../tests/corpus/keeper_notify.bin");
    assert!(matches!(
        KeeperRequest::read(notify),
        Ok(KeeperRequest::Notify(_))
    ));
}

/// The bytes of a piece of a tail are those of the document, and longer encodings of its numbers are refused.
#[test]
fn a_piece_of_a_tail_as_the_document_has_it() {
    let sample = NumberedSample {
        series: 7,
        column: 0,
        t_ms: 1000,
        v: 0.5,
    };
    let piece = TailPiece {
        position: 300,
        events: vec![TailEvent::Samples(vec![sample])],
    };
    let bytes =
        b"\x1b\0\0\0\x04\x8c\0\x2c\x01\0\0\0\0\0\0\x04\x01\0\0\0\x1c\xd0\x0f\0\0\0\0\0\0\xe0\x3f";
    assert_eq!(Answer::Tailed(piece, false).frame(), bytes);
    let frame = &bytes[HEAD..];
    let longer = [&frame[..16], b"\x9c\0", &frame[17..]].concat();
    assert_eq!(Answer::read(&longer), Err("is cut short"));
    // The number of the first column, which is never written.
    let first = [&frame[..16], b"\x1d\0", &frame[17..]].concat();
    assert_eq!(Answer::read(&first), Err("is cut short"));
    let count = [&frame[..12], &[0xff; 4], &frame[16..]].concat();
    assert_eq!(Answer::read(&count), Err("is cut short"));
}

/// The bytes are those of docs/formats/keeper.md.
#[test]
fn values_of_files_as_the_document_has_them() {
    let mut values = FileValues::default();
    assert!(values.push(b"a.rrd", &[b"1:2:U"]));
    let frame = KeeperRequest::Update(values).frame();
    assert_eq!(
        frame,
        b"\x14\0\0\0\x04\x09\x01\0\x05\0a.rrd\x01\0\x05\x001:2:U"
    );
    let refused = Refused {
        place: 0,
        fault: Fault::Missing,
        why: "no".into(),
    };
    let taken = Taken {
        refused: vec![refused],
        ..Taken::default()
    };
    let bytes = b"\x17\0\0\0\x04\x86\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\x02\0no";
    assert_eq!(Answer::Taken(taken).frame(), bytes);
}
