//! collectl's raw files as a source.

use kymo_base::context::Context;
use kymo_base::track::Tracks;
use kymo_recording::collectl::{File, Item, Reader};

use crate::source::{Moment, Source, Step};

/// Raw files being played.
pub struct Collectl {
    reader: Reader,
    seq: u64,
}

impl Collectl {
    /// Plays `files` in the order of their names. `users` are pairs of number and name, which raw
    /// files lack, as they do `own_zone`, the zone of this machine.
    pub fn new(
        files: Vec<File>,
        users: Vec<(String, String)>,
        own_zone: Option<String>,
    ) -> Collectl {
        let mut reader = Reader::new(files);
        reader.set_users(users);
        reader.set_own_zone(own_zone);
        Collectl { reader, seq: 0 }
    }
}

impl Source for Collectl {
    fn next(&mut self) -> Result<Option<Step>, String> {
        let item = self.reader.read().map_err(|error| error.to_string())?;
        Ok(item.map(|item| match item {
            Item::Gap(why) => Step::Gap(why),
            Item::Damage(why) => Step::Damage(why),
            Item::Sample(stamp) => {
                self.seq += 1;
                Step::Sample(Moment {
                    seq: self.seq,
                    real_ns: stamp.real_ns,
                    mono_ns: mono_ns(stamp.real_ns),
                    boot_ns: stamp.boot_ns,
                    missed: stamp.missed,
                    warmup: false,
                })
            }
        }))
    }

    fn tracks(&self) -> &Tracks {
        self.reader.tracks()
    }

    fn context(&self) -> &Context {
        self.reader.context()
    }
}

/// collectl has the wall clock only: when that is set back, the rate rule sees a new boot. It
/// reckons in seconds as doubles, which at this date are multiples of 0.24 us; so that rates are the
/// same to the last digit, this is the moment as such a double has it.
fn mono_ns(real_ns: i64) -> u64 {
    const SECOND_NS: i64 = 1_000_000_000;
    let whole = real_ns.div_euclid(SECOND_NS);
    let secs = whole as f64 + real_ns.rem_euclid(SECOND_NS) as f64 / 1e9;
    let fraction_ns = ((secs - whole as f64) * 1e9).round() as i64;
    u64::try_from(whole * SECOND_NS + fraction_ns).unwrap_or(0)
}
