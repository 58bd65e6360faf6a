//! `kymo poll --index` beside MRTG's indexmaker: the same graphs in the same rows, with the same titles, links and pictures.

use std::path::{Path, PathBuf};
use std::process::Command;

use kymo_tests::{Scratch, kymo, machine};

/// A cell of the table: its text, links, pictures and sizes.
#[derive(Debug, PartialEq, Eq)]
struct Cell {
    text: String,
    links: Vec<String>,
    pictures: Vec<[String; 4]>,
}

fn configuration(work: &Path, name: &str, globals: &str) -> String {
    let folders = ["", "images", "sub", "a/b"].map(|folder| work.join(folder));
    for folder in &folders {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    let mut text = globals.replace("WORK", work.to_str().expect("a path"));
    for (number, (title, descr, keywords)) in [
        ("Uplink 10 to Ulm", "eth0 Uplink Süd", ""),
        ("Uplink 9 to Bonn", " eth1 second", "Directory[t]: sub\n"),
        ("backup &amp; more", "eth2", "Extension[t]: htm\n"),
        (
            "Uplink 9 to Aachen",
            "eth3 First one",
            "Directory[t]: a/b\n",
        ),
        ("zero", "eth4 <b>bold</b>", ""),
    ]
    .into_iter()
    .enumerate()
    {
        let device = descr.split_whitespace().next().expect("a word");
        let own = format!("{name}{}", 12 - number);
        text += &format!(
            "Target[{own}]: `echo 1; echo 2`\nTitle[{own}]: {title}\nMaxBytes[{own}]: 1000\n\
             SetEnv[{own}]: MRTG_INT_IP=\"\" MRTG_INT_DESCR=\"{device}\"\n\
             PageTop[{own}]: <h1>Traffic of {own}</h1>\n <table><tr><td>Description:</td> <td>{descr}</td></tr>\n \
             <tr><td>ifName:</td> <td>if{number}</td></tr> <tr><td>Port Name:</td>\n <td>port {number}</td></tr></table>\n{}",
            keywords.replace("[t]", &format!("[{own}]"))
        );
    }
    text
}

/// Values of an attribute in tags of a name.
fn attributes(html: &str, tag: &str, names: &[&str]) -> Vec<Vec<String>> {
    let lower = html.to_ascii_lowercase();
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = lower[from..].find(&format!("<{tag} ")) {
        let end = from + at + lower[from + at..].find('>').expect("an end");
        let one = &html[from + at..end];
        let value = |name: &&str| {
            let place = one.to_ascii_lowercase().find(&format!("{name}=\""));
            let rest = place.map(|place| &one[place + name.len() + 2..]);
            let value = rest.and_then(|rest| rest.split('"').next());
            value.unwrap_or_default().to_string()
        };
        found.push(names.iter().map(value).collect());
        from = end;
    }
    found
}

/// A path without `x/../`.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match parts.last() {
            Some(&last) if part == ".." && last != ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn without_tags(html: &str) -> String {
    let mut text = String::new();
    for piece in html.split('<') {
        text += piece.split_once('>').map_or(piece, |(_, text)| text);
        text.push(' ');
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The rows of the first table of a page.
fn rows(page: &str) -> Vec<Vec<Cell>> {
    let lower = page.to_ascii_lowercase();
    let from = lower.find("<table").expect("a table");
    let to = from + lower[from..].find("</table>").expect("an end");
    let mut rows = Vec::new();
    let table = page[from..to].replace("<TR", "<tr").replace("<TD", "<td");
    for row in table.split("<tr").skip(1) {
        let cells = row.split("<td").skip(1).map(|cell| {
            let cell = cell.split_once('>').map_or("", |(_, cell)| cell);
            let links = attributes(cell, "a", &["href"]);
            let pictures = attributes(cell, "img", &["src", "alt", "width", "height"]);
            Cell {
                text: without_tags(cell),
                links: links
                    .into_iter()
                    .flatten()
                    .map(|link| clean(&link))
                    .collect(),
                pictures: pictures
                    .into_iter()
                    .map(|of| of.try_into().expect("four"))
                    .map(|[source, rest @ ..]: [String; 4]| {
                        let [alt, width, height] = rest;
                        [clean(&source), alt, width, height]
                    })
                    .collect(),
            }
        });
        let cells: Vec<Cell> = cells.filter(|cell| !cell.links.is_empty()).collect();
        if !cells.is_empty() {
            rows.push(cells);
        }
    }
    rows
}

fn run(command: &mut Command) -> (bool, String) {
    let output = command.env("LANG", "C").output().expect("it is started");
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), page)
}

#[test]
fn an_index_has_the_graphs_of_indexmakers() {
    if machine::must_skip(&["indexmaker"]) {
        return;
    }
    let scratch = Scratch::new("poll-index");
    let work = scratch.path("w");
    let file = |name: &str, globals: &str| -> PathBuf {
        let path = scratch.path(&format!("{name}.cfg"));
        std::fs::write(&path, configuration(&work, name, globals)).expect("a configuration");
        path
    };
    let plain = file("r", "WorkDir: WORK\nRefresh: 900\n");
    let more = file("s", "WorkDir: WORK\n");
    let apart = file("i", "LogDir: WORK\nHtmlDir: WORK\nImageDir: WORK/images\n");
    let rrd = file("d", "WorkDir: WORK\nLogFormat: rrdtool\n");
    let cases: &[(&[&str], &[&PathBuf])] = &[
        (&[], &[&plain]),
        (&["--sort", "name"], &[&plain, &more]),
        (&["--sort=title", "--columns", "3"], &[&plain]),
        (&["--sort=descr", "--columns=1"], &[&plain]),
        (&["--sort=original", "--show=week"], &[&plain]),
        (&["--show", "none"], &[&plain]),
        (&["--show=year", "--width=300", "--height", "90"], &[&plain]),
        (&["--filter", "title=~Uplink"], &[&plain]),
        (
            &["--filter=name!~1[12]$", "--filter", "title=~[Uu]"],
            &[&plain],
        ),
        (&["--filter", "pagetop=~port [13]"], &[&plain]),
        (&["--section=title", "--enumerate"], &[&plain]),
        (&["--section", "name", "--clicktext"], &[&plain]),
        (&["--section=descr"], &[&plain]),
        (&["--section=description"], &[&apart]),
        (&["--section=portname"], &[&plain]),
        (&["--section=ifname", "--prefix", "../stat//"], &[&plain]),
        (&["--prefix=http://h/x", "--show=month"], &[&plain]),
        (&["--nolegend", "--rrdviewer=/v?a=b"], &[&rrd]),
        (&["--show=none", "--title", "X"], &[&rrd]),
        (&["--show=none"], &[&apart]),
        (&[], &[&apart]),
    ];
    for (words, files) in cases {
        let (_, theirs) = run(Command::new("indexmaker").args(*words).args(*files));
        let (is_done, ours) = run(Command::new(kymo())
            .args(["poll", "--index"])
            .args(*words)
            .args(*files));
        assert!(is_done, "{words:?}");
        assert!(!rows(&theirs).is_empty(), "{words:?}: {theirs}");
        assert_eq!(rows(&ours), rows(&theirs), "{words:?}");
        let refresh = |page: &str| {
            let metas = attributes(page, "meta", &["http-equiv", "content"]);
            let mut metas = metas.into_iter();
            metas.find(|meta| meta[0].eq_ignore_ascii_case("refresh"))
        };
        assert_eq!(
            refresh(&ours).expect("a refresh")[1],
            refresh(&theirs).expect("a refresh")[1],
            "{words:?}"
        );
        let title = |page: &str| {
            let lower = page.to_ascii_lowercase();
            let from = lower.find("<title>").expect("a title") + 7;
            page[from..][..lower[from..].find("</title>").expect("an end")].to_string()
        };
        assert_eq!(title(&ours), title(&theirs), "{words:?}");
    }
}

#[test]
fn an_index_takes_the_command_lines_of_indexmaker() {
    if machine::must_skip(&["indexmaker"]) {
        return;
    }
    let scratch = Scratch::new("poll-index-words");
    let config = scratch.path("r.cfg");
    let globals = "WorkDir: WORK\nIconDir: /of-the-configuration\n";
    std::fs::write(&config, configuration(&scratch.path("w"), "r", globals)).expect("written");
    let text = scratch.path("text.html");
    std::fs::write(&text, "<i>from a\nfile</i>").expect("written");
    let text = text.to_str().expect("a path");
    for words in [
        &["-sort=name", "-col", "3"][..],
        &["--SORT", "title", "--Show=week"],
        &["--title-file", text, "--title", "not this"],
        &["--subtitle-file", text, "--headlevel", "2"],
        &["--title=first", "--title=second"],
        &["--perhost", "--noperhost", "--no-compact", "--sidebyside"],
        &["--pagetop", "--above", "--pageend=below"],
        &["--pagetopend=<hr>"],
        &["--pagetopend-f", text, "--pagetop", "mine"],
        &[
            "--icondir",
            "/icons//",
            "--addhead=<!-- a -->",
            "--headeradd=<!-- b -->",
        ],
        &["--icondir=http://icons", "--nolegend"],
        &["--nobold", "--nooptlog", "--enum"],
        &[
            "--bold",
            "--optlog",
            "--filter=name!~^r8$",
            "--filter",
            "title=~U",
        ],
        &[],
    ] {
        let (_, theirs) = run(Command::new("indexmaker").args(words).arg(&config));
        let mut command = Command::new(kymo());
        let command = command.args(["poll", "--index"]).args(words);
        let (is_done, ours) = run(command.arg(&config));
        assert!(is_done, "{words:?}");
        let text = |page: &str| {
            let from = page.to_ascii_lowercase().find("<body").expect("a body");
            let to = page.find("oss.oetiker.ch").unwrap_or(page.len());
            let to = page[..to].rfind('<').expect("a tag");
            let text = without_tags(&page[from..to]);
            // The maker's name is the page's own.
            text.trim_end_matches(" kymo poll").to_string()
        };
        assert_eq!(text(&ours), text(&theirs), "{words:?}");
        assert_eq!(rows(&ours), rows(&theirs), "{words:?}");
        let icons = |page: &str| {
            let page = page.replace('\n', " ");
            let all = attributes(&page, "img", &["src"]).into_iter().flatten();
            let all = all.filter(|source| source.contains("mrtg-"));
            all.collect::<Vec<_>>()
        };
        assert_eq!(icons(&ours), icons(&theirs), "{words:?}");
        let bold = |page: &str| page.to_ascii_lowercase().matches("<b>").count();
        assert_eq!(bold(&ours), bold(&theirs), "{words:?}");
        let command = |page: &str| {
            let mut metas = attributes(page, "meta", &["name", "content"]).into_iter();
            let meta = metas
                .find(|meta| meta[0] == "Command-Line")
                .expect("a meta");
            let words = meta[1].replace("kymo poll --index", "");
            words.replace("/usr/bin/indexmaker", "")
        };
        assert_eq!(command(&ours), command(&theirs), "{words:?}");
        let comments = |page: &str| ["<!-- b -->", "<!-- a -->"].map(|text| page.find(text));
        let (ours, theirs) = (comments(&ours), comments(&theirs));
        assert_eq!(ours.is_sorted(), theirs.is_sorted(), "{words:?}");
        assert_eq!(ours.map(|at| at.is_some()), theirs.map(|at| at.is_some()));
    }
}

/// Rows of the first table: what their cells show, in order. Empty ones do not count.
fn shown(page: &str) -> Vec<Vec<Vec<String>>> {
    let lower = page.to_ascii_lowercase();
    let from = lower.find("<table").expect("a table");
    let to = from + lower[from..].find("</table>").expect("an end");
    // The first row behind a heading has no start in indexmaker's.
    let table = page[from..to].replace("<TR", "<tr").replace("<TD", "<td");
    let table = table.replace("</tr><td>", "</tr><tr><td>");
    let pieces = |cell: &str| {
        let cell = cell.split_once('>').map_or("", |(_, cell)| cell);
        let cell = cell.replace("<IMG", "<img");
        let mut pieces = Vec::new();
        for (number, piece) in cell.split("<img").enumerate() {
            let tag = format!("<img{piece}");
            let (picture, text) = match number {
                0 => (None, piece),
                _ => (
                    attributes(&tag, "img", &["src"]).pop(),
                    piece.split_once('>').map_or("", |(_, text)| text),
                ),
            };
            pieces.extend(picture.into_iter().flatten());
            pieces.extend(Some(without_tags(text)).filter(|text| !text.is_empty()));
        }
        pieces
    };
    let row = |row: &str| -> Vec<Vec<String>> {
        let cells = row.split("<td").skip(1).map(pieces);
        cells.filter(|cell| !cell.is_empty()).collect()
    };
    let rows = table.split("<tr").map(row);
    rows.filter(|row| !row.is_empty()).collect()
}

#[test]
fn an_index_stands_as_indexmakers() {
    if machine::must_skip(&["indexmaker"]) {
        return;
    }
    let scratch = Scratch::new("poll-index-hosts");
    let work = scratch.path("w");
    std::fs::create_dir_all(&work).expect("a folder");
    let mut text = format!("WorkDir: {}\n", work.display());
    for (name, target, heading) in [
        ("a1", "1:public@core.example.net", "Traffic of eth1"),
        (
            "a2",
            "2:public@core.example.net:161::::2",
            "core.example.net: eth2",
        ),
        ("a3", "3:public@Core.example.net", "xcore.example.nets eth3"),
        ("b1", "1:pu\\@blic@192.0.2.7", "eth0 of 192.0.2.70"),
        ("b2", "#eth\\ 0:public@192.0.2.7", "eth1 of 192.0.2.7"),
        ("c1", "`echo 1; echo 2`", "A command"),
        ("c2", "1:p@core.example.net + 2:p@192.0.2.7", "A sum"),
        ("d1", "4:public@core.example.net", "Again"),
    ] {
        text += &format!(
            "Target[{name}]: {target}\nTitle[{name}]: T {name}\nMaxBytes[{name}]: 1000\nPageTop[{name}]: <h1>{heading}</h1>\n"
        );
    }
    let config = scratch.path("r.cfg");
    std::fs::write(&config, text).expect("a configuration");
    let all = [
        "--perhost",
        "--sectionhost",
        "--compact",
        "--picfirst",
        "--sidebyside",
    ];
    for columns in ["--columns=2", "--columns=3"] {
        for chosen in 0..1 << all.len() {
            let words = all.iter().enumerate();
            let words = words.filter(|(number, _)| chosen >> number & 1 == 1);
            let mut words: Vec<&str> = words.map(|(_, word)| *word).collect();
            words.push(columns);
            let more: &[&str] = match chosen % 3 {
                0 => &["--enumerate"],
                1 => &["--show=none"],
                _ => &["--clicktext", "--section=name"],
            };
            words.extend(more);
            let (_, theirs) = run(Command::new("indexmaker").args(&words).arg(&config));
            let mut command = Command::new(kymo());
            let command = command.args(["poll", "--index"]).args(&words);
            let (is_done, ours) = run(command.arg(&config));
            assert!(is_done, "{words:?}");
            let theirs = theirs.replace("Interfaces of unspecified host", "Special Items");
            assert_eq!(shown(&ours), shown(&theirs), "{words:?}");
            assert!(shown(&ours).len() > 2, "{words:?}");
        }
    }
}

#[test]
fn an_index_elsewhere_finds_its_pages() {
    let scratch = Scratch::new("poll-index-elsewhere");
    let work = scratch.path("www/mrtg");
    let config = scratch.path("r.cfg");
    std::fs::write(&config, configuration(&work, "r", "WorkDir: WORK\n")).expect("written");
    let output = scratch.path("www/index.html");
    let mut command = Command::new(kymo());
    let command = command.args(["poll", "--index", "--autoprefix", "--output"]);
    let (is_done, page) = run(command.arg(&output).arg(&config));
    assert!(is_done && page.is_empty(), "{page}");
    let page = std::fs::read_to_string(&output).expect("an index");
    let first = &rows(&page)[0][0];
    assert_eq!(first.links, ["mrtg/r12.html"]);
    assert_eq!(first.pictures[0][0], "mrtg/r12-day.png");
}

#[test]
fn an_index_that_cannot_be_made_is_said() {
    let scratch = Scratch::new("poll-index-refused");
    let config = scratch.path("r.cfg");
    std::fs::write(
        &config,
        configuration(&scratch.path("w"), "r", "WorkDir: WORK\n"),
    )
    .expect("written");
    let config = config.to_str().expect("a path");
    for (words, said) in [
        (
            &["--filter", "size=~1", config][..],
            "it has to be title=~EXPRESSION",
        ),
        (
            &["--filter", "title=~(", config],
            "cannot use --filter title=~(",
        ),
        (&["--filter", "title=~nothing", config], "no target fits"),
        (&["--sort", "size", config], "--sort"),
        (&["/nonexistent.cfg"], "cannot read /nonexistent.cfg"),
        (
            &["--title-file=/nonexistent.html", config],
            "cannot read /nonexistent.html",
        ),
        (&["--height"], "--height"),
        (&["--perhost=1", config], "--perhost"),
        (&[], "CONFIGURATION"),
        (
            &["--output", "/nonexistent/x.html", config],
            "cannot write /nonexistent/x.html",
        ),
    ] {
        let output = Command::new(kymo())
            .args(["poll", "--index"])
            .args(words)
            .output()
            .expect("it is started");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(stderr.contains(said), "{words:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{words:?}");
    }
}
