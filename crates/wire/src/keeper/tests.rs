use super::*;
use kymo_base::label_set::LabelSet;

fn questions() -> Vec<Question> {
    let matcher = |text| Matcher::parse(text).expect("a matcher");
    vec![
        Question::Select(Vec::new()),
        Question::Select(vec![
            matcher("host=web*"),
            matcher("plugin!=cpu"),
            matcher("idle"),
        ]),
        Question::Range(Range {
            names: vec![b"a.rrd".to_vec(), b"b/c \xff.rrd".to_vec()],
            from: -5,
            thru: 1 << 40,
            rows_max: 600,
        }),
        Question::Define(vec![LabelledSeries {
            labels: labels("cpu.user"),
            step: 10,
            heartbeat: 120,
            start: 1_000_000_000,
            columns: vec![(b"value".to_vec(), b"GAUGE".to_vec())],
        }]),
        Question::Write(vec![
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
    ]
}

fn labels(field: &str) -> LabelSet {
    LabelSet::new([("field", field.as_bytes()), ("host", b"web1")]).expect("a set")
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
        Answer::Done,
        Answer::Refused("cannot read a.rrd: no such file".into()),
    ]
}

#[test]
fn frames_come_back() {
    for question in questions() {
        let frame = question.frame();
        let head = frame[..HEAD].try_into().expect("a head");
        assert_eq!(body_bytes(head, QUESTION_MAX), Ok(frame.len() - HEAD));
        assert_eq!(Question::read(&frame[HEAD..]), Ok(question));
    }
    for answer in answers() {
        assert_eq!(Answer::read(&answer.frame()[HEAD..]), Ok(answer));
    }
}

/// The bytes are the format: docs/formats/keeper.md shows them.
#[test]
fn bytes_are_as_the_document_says() {
    let matcher = Matcher::parse("host=web*").expect("a matcher");
    let frame = Question::Select(vec![matcher]).frame();
    assert_eq!(frame, b"\x11\0\0\0\x02\x01\x01\0\x04\0host\0\x04\0web*");
    let frame = Answer::Refused("no".into()).frame();
    assert_eq!(frame, b"\x06\0\0\0\x02\xff\x02\0no");
}

#[test]
fn what_is_cut_or_longer_is_refused() {
    let frames = questions().into_iter().map(|question| question.frame());
    for frame in frames {
        for end in HEAD..frame.len() {
            assert!(Question::read(&frame[HEAD..end]).is_err());
        }
        assert!(Question::read(&[&frame[HEAD..], b"x"].concat()).is_err());
    }
    for frame in answers().into_iter().map(|answer| answer.frame()) {
        for end in HEAD..frame.len() {
            assert!(Answer::read(&frame[HEAD..end]).is_err());
        }
        assert!(Answer::read(&[&frame[HEAD..], b"x"].concat()).is_err());
    }
    assert_eq!(
        Question::read(&[1, 1]),
        Err("is of another version of kymo")
    );
    assert_eq!(Question::read(&[2, 9]), Err("is of an unknown kind"));
    assert_eq!(body_bytes([1, 0, 0, 0], 100), Err("has no kind"));
    assert_eq!(body_bytes([101, 0, 0, 0], 100), Err("is too long"));
}

/// A count that promises more than there is takes no memory.
#[test]
fn counts_are_not_believed() {
    let rows = [
        &[VERSION, ROWS][..],
        &[0; 8],
        &[10, 0, 0, 0],
        &[0],
        &[1, 0, 1, 0, b'a'],
        &[0xff; 4],
    ];
    assert_eq!(Answer::read(&rows.concat()), Err("is cut short"));
    let series = [&[VERSION, SERIES, 0][..], &[0xff; 4]];
    assert_eq!(Answer::read(&series.concat()), Err("is cut short"));
}
