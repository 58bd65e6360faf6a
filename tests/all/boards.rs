//! Boards of `kymo serve`: askers with the token keep them in the data folder, readers of numbers read them.

use std::fs;

use kymo_tests::Scratch;
use kymo_tests::served::{Served, ask};

const BOARD: &str = r#"{"version":1,"title":"Web <b>","charts":[{"queries":[{"expr":"node_load1"}]},{"panel":"cpu"}]}"#;

fn serve(scratch: &Scratch) -> (Served, String) {
    let config = "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = []\n";
    let mut served = Served::configured(scratch, &scratch.path("data"), config);
    let address = served.address();
    (served, address)
}

#[test]
fn boards_are_kept_for_who_has_the_token() {
    let scratch = Scratch::new("boards");
    let (served, address) = serve(&scratch);
    let token = fs::read_to_string(scratch.path("data/token")).expect("a token");
    let (token, path) = (token.trim(), "/kymo/v1/boards/web");
    let said = |method: &str, path: &str, token: &str, body: &str| {
        ask(&address, method, path, token, body).expect("an answer")
    };
    let list = "/kymo/v1/boards";
    assert_eq!(
        said("GET", list, "", "").1,
        r#"{"boards":[],"may_keep":false}"#
    );
    assert_eq!(said("GET", path, token, "").0, 404);
    for (method, body) in [("PUT", BOARD), ("DELETE", "")] {
        let (status, body) = said(method, path, "", body);
        assert_eq!(status, 401, "{body}");
        assert!(body.contains("cannot keep or remove a board"), "{body}");
    }
    assert_eq!(said("PUT", path, token, BOARD).0, 200);
    let listed = r#"{"boards":[{"name":"web","title":"Web <b>"}],"may_keep":true}"#;
    assert_eq!(said("GET", list, token, "").1, listed);
    // Whoever may read numbers reads boards.
    let (status, body) = said("GET", path, "", "");
    assert_eq!(status, 200);
    assert!(
        body.contains(r#""expr":"node_load1""#) && body.contains(r#""panel":"cpu""#),
        "{body}"
    );
    let long = format!(
        r#"{{"version":1,"title":"{}","charts":[]}}"#,
        "x".repeat(300 << 10)
    );
    for (path, body, status, part) in [
        (path, "{", 400, "cannot keep board \\\"web\\\""),
        (
            path,
            r#"{"version":9,"title":"","charts":[]}"#,
            400,
            "version 9 is not 1",
        ),
        (path, &long, 413, ""),
        ("/kymo/v1/boards/Web", BOARD, 400, "the name"),
        ("/kymo/v1/boards/..%2Fx", BOARD, 400, "the name"),
    ] {
        let (found, body) = said("PUT", path, token, body);
        assert_eq!(found, status, "{path}: {body}");
        assert!(body.contains(part), "{path}: {body}");
    }
    assert_eq!(said("POST", path, token, BOARD).0, 405);
    let names = fs::read_dir(scratch.path("data/boards")).expect("the folder");
    assert_eq!(names.count(), 1, "only what was kept");
    drop(served);
    let (_served, address) = serve(&scratch);
    let (status, _) = ask(&address, "GET", path, "", "").expect("an answer");
    assert_eq!(status, 200, "the board is there after a start");
    let (status, _) = ask(&address, "DELETE", path, token, "").expect("an answer");
    assert_eq!(status, 200);
    assert!(!scratch.path("data/boards/web.json").exists());
    let (status, _) = ask(&address, "DELETE", path, token, "").expect("an answer");
    assert_eq!(status, 404);
}
