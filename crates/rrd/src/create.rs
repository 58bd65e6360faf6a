//! Creates a file from `DS:` and `RRA:` specifications like `rrdtool create`.

use kymo_base::random::next_random;

use crate::UNKNOWN;
use crate::error::Error;
use crate::header::Header;
use crate::preparation::{new_cdp, new_pdp};
use crate::room::{no_room, require_room};
use crate::rrd::Rrd;
use crate::source;
use crate::spec::{self, Mapping, Needs};

/// Default for the seconds of a primary data point.
const STEP_DEFAULT: u64 = 300;

/// The parsed request of a command line or of the daemon's CREATE.
#[derive(Clone, Copy, Debug, Default)]
pub struct Create<'a> {
    /// The file's name as given: Holt-Winters archives contain a hash of it.
    pub file_name: &'a [u8],
    /// Seconds of a primary data point; 0: the step of the template, or 300.
    pub step: u64,
    /// Start of the file, seconds since the epoch; `None`: the last update of the newest source, of the template, or ten seconds
    /// ago.
    pub start: Option<i64>,
    /// Arguments from the first `DS:` or `RRA:` on.
    pub definitions: &'a [&'a [u8]],
}

/// Makes a file. `now` is in seconds since the epoch. `random` is the state of the generator that chooses the first row of each
/// archive: equal states give equal files. The file gets the definitions of `template` and the data of `sources`.
pub fn create(
    request: &Create,
    now: i64,
    random: &mut u64,
    template: Option<&Header>,
    sources: &[&Rrd],
) -> Result<Rrd, Error> {
    let (mut header, mappings) = define(request, now, random, template, !sources.is_empty())?;
    if !sources.is_empty() && request.start.is_none() {
        let newest = sources.iter().map(|source| source.header.last_up).max();
        header.last_up = newest.unwrap_or(0).max(0);
        let pdp = new_pdp(header.last_up, header.pdp_step);
        header.pdp_prep.fill(pdp);
    }
    let cells = vec![UNKNOWN; header.cell_count() as usize];
    let mut rrd = Rrd { header, cells };
    if !sources.is_empty() {
        source::prefill(&mut rrd, sources, &mappings)?;
    }
    Ok(rrd)
}

/// The header of the new file, and for its data sources those of the sources that fill them.
pub fn define(
    request: &Create,
    now: i64,
    random: &mut u64,
    template: Option<&Header>,
    has_sources: bool,
) -> Result<(Header, Vec<Mapping>), Error> {
    let mut header = empty(request, template);
    let (hash, mut needs) = (spec::hash(request.file_name), Needs::default());
    let mut mappings = Vec::new();
    for &arg in request.definitions {
        if let Some(def) = arg.strip_prefix(b"DS:") {
            let (ds, mapping) = spec::parse_ds(def, &header.ds, &mut needs)?;
            header.ds.push(ds);
            mappings.push(mapping);
        } else if arg.starts_with(b"RRA:") {
            let rra = spec::parse_rra(arg, header.pdp_step, hash, &mut needs)?;
            header.rra.push(rra);
            spec::add_companions(&mut header.rra, hash)?;
        } else {
            let arg = spec::shown(arg);
            return Err(Error::new(format!("can't parse argument '{arg}'")));
        }
    }
    header.version = header.version.max(needs.0);
    if header.rra.is_empty() {
        return Err(Error::new(
            "you must define at least one Round Robin Archive",
        ));
    }
    if header.ds.is_empty() {
        return Err(Error::new("you must define at least one Data Source"));
    }
    let lent = template.map(|template| template.last_up);
    let lent = lent.filter(|&last_up| last_up > 0 && !has_sources);
    let start = request.start.filter(|&start| start > 0).or(lent);
    header.last_up = start.unwrap_or(now - 10);
    begin(&mut header, random)?;
    Ok((header, mappings))
}

/// A header of version 3 with the definitions of the template.
fn empty(request: &Create, template: Option<&Header>) -> Header {
    let step = match (request.step, template) {
        (0, Some(template)) => template.pdp_step,
        (step, _) => step,
    };
    Header {
        version: 3,
        head_pad: [0; 7],
        pdp_step: if step == 0 { STEP_DEFAULT } else { step },
        head_par: [0; 10],
        ds: template.map_or(Vec::new(), |template| template.ds.clone()),
        rra: template.map_or(Vec::new(), |template| template.rra.clone()),
        last_up: 0,
        last_up_usec: 0,
        pdp_prep: Vec::new(),
        cdp_prep: Vec::new(),
        cur_row: Vec::new(),
    }
}

/// Initialises the live part of the header with unknown values.
fn begin(header: &mut Header, random: &mut u64) -> Result<(), Error> {
    require_room(header)?;
    let (last_up, step) = (header.last_up, header.pdp_step);
    let pdp = new_pdp(last_up, step);
    header.pdp_prep = vec![pdp; header.ds.len()];
    for rra in &header.rra {
        let cdp = new_cdp(last_up, step, rra, &pdp);
        header
            .cdp_prep
            .extend(std::iter::repeat_n(cdp, header.ds.len()));
        header.cur_row.push(next_random(random) % rra.row_cnt);
    }
    header.check().map_err(|_| no_room())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::MEMORY_CELLS_MAX;

    fn ask(definitions: &[&str]) -> Result<Rrd, String> {
        let definitions: Vec<&[u8]> = definitions.iter().map(|def| def.as_bytes()).collect();
        let request = Create {
            file_name: b"f",
            definitions: &definitions,
            ..Create::default()
        };
        create(&request, 1_000_000_017, &mut 1, None, &[]).map_err(|error| error.text)
    }

    #[test]
    fn a_new_file_knows_nothing() {
        let rrd = ask(&["DS:a:GAUGE:1h:0:U", "RRA:LAST:0.5:1h:5"]).unwrap();
        let header = &rrd.header;
        assert_eq!(
            (header.version, header.pdp_step, header.last_up),
            (3, 300, 1_000_000_007)
        );
        assert_eq!((header.rra[0].pdp_cnt, header.ds[0].par[0]), (12, 3600));
        assert_eq!(
            (
                &header.pdp_prep[0].last_ds[..2],
                header.pdp_prep[0].scratch[0]
            ),
            (&b"U\0"[..], 107)
        );
        assert_eq!(header.cdp_prep[0].scratch[1], 9);
        assert!(
            rrd.cells
                .iter()
                .all(|cell| cell.to_bits() == UNKNOWN.to_bits())
        );
        assert_eq!(
            Rrd::parse(&rrd.to_bytes()).map(|back| back.to_bytes()),
            Ok(rrd.to_bytes())
        );
    }

    #[test]
    fn rows_of_one_kind_of_file_begin_where_the_generator_says() {
        let begin = |name: &[u8], mut random: u64| {
            let definitions: [&[u8]; 2] = [b"DS:a:GAUGE:60:U:U", b"RRA:LAST:0.5:1:1000"];
            let request = Create {
                file_name: name,
                definitions: &definitions,
                ..Create::default()
            };
            let rrd = create(&request, 1_000_000_017, &mut random, None, &[]);
            rrd.unwrap().header.cur_row
        };
        assert_eq!(begin(b"f", 1), begin(b"g", 1));
        assert_ne!(begin(b"f", 1), begin(b"f", 2));
    }

    #[test]
    fn what_is_too_large_or_missing_is_refused() {
        let (ds, rra) = ("DS:a:GAUGE:60:U:U", "RRA:LAST:0.5:1:5");
        let many = format!("RRA:LAST:0.5:1:{}", MEMORY_CELLS_MAX + 1);
        let long = format!("RRA:LAST:0.5:{}:5", 1u64 << 60);
        let cases: &[(&[&str], &str)] = &[
            (&[ds], "you must define at least one Round Robin Archive"),
            (&[rra], "you must define at least one Data Source"),
            (&[ds, ds, rra], "Duplicate DS name: a"),
            (&[ds, "foo"], "can't parse argument 'foo'"),
            (&[ds, &many], "cannot allocate memory"),
            (&[ds, &long], "cannot allocate memory"),
        ];
        for (definitions, expected) in cases {
            assert_eq!(ask(definitions).err().as_deref(), Some(*expected));
        }
    }
}
