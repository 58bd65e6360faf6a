//! cfgmaker's filters and templates, which are Perl: `perl` evaluates them, with cfgmaker's variables. Texts of devices
//! reach it as quoted texts alone. Its questions for devices stand among the lines that it prints; answers follow the program on its stdin.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context as _, Result, bail};

/// Functions for filters and templates. All that these print goes to stderr, as stdout has the lines.
const BEGIN: &str = r#"
use strict;
open(our $kymo_lines, '>&', \*STDOUT) or die "$!\n";
open(STDOUT, '>&', \*STDERR) or die "$!\n";
binmode $kymo_lines;
sub html_escape {
    my ($text) = @_;
    $text =~ s/&/&amp;/g;
    $text =~ s/</&lt;/g;
    $text =~ s/>/&gt;/g;
    $text =~ s/\n(?=.)/<BR>\n /gs;
    return $text;
}
our $v3opt = {};
sub kymo_put {
    my $bytes = join '', map { defined $_ ? $_ : '' } @_;
    utf8::encode($bytes) if utf8::is_utf8($bytes);
    print {$kymo_lines} length($bytes), "\n", $bytes;
}
sub oid_pick ($$$;@) {
    my ($router, undef, @oids) = @_;
    print {$kymo_lines} '?', 1 + @oids, "\n";
    kymo_put($_) for $router, @oids;
    $kymo_lines->flush;
    local $/ = "\n";
    my $answer = <DATA>;
    return defined $answer && $answer =~ /(\d+)/ ? $oids[$1] : undef;
}
"#;

/// Code for each device.
const HOST: &str = r#"
    ($problem_lines, $target_lines, $separator_lines) = ('', '', "\n\n");
    if (defined $kymo_host) {
        eval $kymo_host;
        die "--host-template: $@" if $@;
    }
    kymo_put($head_lines, $problem_lines, $target_lines, $separator_lines);
"#;

/// Code for each interface.
const INTERFACE: &str = r####"
    ($problem_lines, $target_lines, $separator_lines) = ('', '', "\n\n");
    if (defined $kymo_filter) {
        my $is_taken = eval $kymo_filter;
        die "--if-filter: $@" if $@;
        @kymo_problems = () if $is_taken;
        push @kymo_problems, 'filter specified by --if-filter rejected the interface' unless $is_taken;
        $if_ok = 0 unless $is_taken;
    }
    if (@kymo_problems) {
        $problem_lines = "### The following interface is commented out because:\n";
        $problem_lines .= "### * $_\n" for @kymo_problems;
        $if_ok = 0;
    }
    if (defined $kymo_interface) {
        eval $kymo_interface;
        die "--if-template: $@" if $@;
    } else {
        $target_lines = $default_target_lines;
    }
    $target_lines =~ s/^/# /gm unless $if_ok;
    kymo_put($head_lines, $problem_lines, $target_lines, $separator_lines);
"####;

/// Variables of HTML that are made of others.
const ESCAPED: [&str; 12] = [
    "syscontact",
    "syslocation",
    "sysdescr",
    "if_type_desc",
    "if_snmp_descr",
    "if_snmp_name",
    "if_snmp_alias",
    "if_cisco_descr",
    "if_description",
    "if_title",
    "desc_prefix",
    "if_title_desc",
];

/// Variables of interfaces that a template finds undefined.
const UNSET: [&str; 2] = ["if_port_name", "if_pp_port_name"];

/// A filter and templates.
#[derive(Default)]
pub(super) struct PerlRules {
    filter: Option<String>,
    host: Option<String>,
    interface: Option<String>,
}

/// Variables with their texts.
pub(super) type Variables = Vec<(&'static str, String)>;

/// Variables of a device or of an interface.
pub(super) struct PerlCase {
    pub(super) variables: Variables,
    /// Reasons to comment the interface out; `None`: a device.
    pub(super) problems: Option<Vec<String>>,
}

impl PerlCase {
    fn has(&self, name: &str) -> bool {
        self.variables.iter().any(|(own, _)| *own == name)
    }
}

impl PerlRules {
    /// A filter, and the files of templates for devices and for interfaces.
    pub(super) fn read(
        filter: Option<&str>,
        host: Option<&Path>,
        interface: Option<&Path>,
    ) -> Result<PerlRules> {
        let text = |path: Option<&Path>| -> Result<Option<String>> {
            let Some(path) = path else { return Ok(None) };
            let text = std::fs::read(path);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            Ok(Some(String::from_utf8_lossy(&text).into_owned()))
        };
        Ok(PerlRules {
            filter: filter.map(String::from),
            host: text(host)?,
            interface: text(interface)?,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.filter.is_none() && self.host.is_none() && self.interface.is_none()
    }

    /// The lines of each case. `pick` answers oid_pick(): the number of the first OID that a device has.
    pub(super) fn lines(
        &self,
        cases: &[PerlCase],
        pick: &mut dyn FnMut(&str, &[String]) -> Option<usize>,
    ) -> Result<Vec<String>> {
        let cannot = || "cannot run perl, which evaluates filters and templates";
        let mut perl = Command::new("perl");
        let perl = perl.arg("-").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut perl = perl.stderr(Stdio::piped()).spawn().with_context(cannot)?;
        let pipes = (perl.stdin.take(), perl.stdout.take(), perl.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(mut stderr)) = pipes else {
            bail!(cannot());
        };
        let said = thread::spawn(move || {
            let mut said = Vec::new();
            // Messages before a failure count.
            let _ = stderr.read_to_end(&mut said);
            String::from_utf8_lossy(&said).into_owned()
        });
        // perl reads all of the program before it runs any of it.
        let written = stdin.write_all(self.program(cases).as_bytes());
        written.with_context(cannot)?;
        let (mut stdout, mut lines) = (BufReader::new(stdout), Vec::new());
        while let Some(printed) = printed(&mut stdout) {
            match printed {
                PerlOutput::Text(text) => lines.push(text),
                PerlOutput::Question(router, oids) => {
                    let number = pick(&router, &oids).map_or("-".into(), |at| at.to_string());
                    // perl that has ended prints nothing more.
                    let _ = writeln!(stdin, "{number}");
                }
            }
        }
        drop(stdin);
        let status = perl.wait().with_context(cannot)?;
        let said = said.join().unwrap_or_default();
        if !status.success() {
            bail!("cannot evaluate {}", said.trim_end());
        }
        if !said.is_empty() {
            kymo_sys::talk::say(format_args!("kymo: perl: {}", said.trim_end()));
        }
        match lines.len() == cases.len() {
            true => Ok(lines),
            false => bail!("cannot evaluate the templates: perl ended before the last one"),
        }
    }

    fn program(&self, cases: &[PerlCase]) -> String {
        let mut program = BEGIN.to_string();
        for (name, text) in [
            ("kymo_filter", &self.filter),
            ("kymo_host", &self.host),
            ("kymo_interface", &self.interface),
        ] {
            let text = text.as_ref().map_or("undef".into(), |text| quoted(text));
            let _ = writeln!(program, "our ${name} = {text};");
        }
        program += "our ($problem_lines, $target_lines, $separator_lines, @kymo_problems);\n";
        for case in cases {
            // A variable that cfgmaker does not have there is an error, as in cfgmaker.
            let names = case.variables.iter().map(|(name, _)| format!("${name}"));
            let escaped = ESCAPED.iter().filter(|name| case.has(name));
            let names = names.chain(escaped.map(|name| format!("$html_{name}")));
            let unset = UNSET.iter().filter(|_| case.problems.is_some());
            let names = names.chain(unset.map(|name| format!("${name}")));
            let names: Vec<String> = names.collect();
            let _ = writeln!(program, "{{\n    our ({});", names.join(", "));
            for (name, text) in &case.variables {
                let _ = writeln!(program, "    ${name} = {};", quoted(text));
                if ESCAPED.contains(name) {
                    let _ = writeln!(program, "    $html_{name} = html_escape(${name});");
                }
            }
            if let Some(problems) = &case.problems {
                let problems: Vec<String> = problems.iter().map(|text| quoted(text)).collect();
                let _ = writeln!(program, "    @kymo_problems = ({});", problems.join(", "));
            }
            program += match case.problems {
                None => HOST,
                Some(_) => INTERFACE,
            };
            program += "}\n";
        }
        program + "__END__\n"
    }
}

/// A part of what perl prints.
enum PerlOutput {
    Text(String),
    /// A device and OIDs.
    Question(String, Vec<String>),
}

/// The next part; `None`: there is none, or it is cut off.
fn printed(stdout: &mut impl BufRead) -> Option<PerlOutput> {
    let mut head = String::new();
    stdout.read_line(&mut head).ok()?;
    let head = head.trim_end();
    let Some(count) = head.strip_prefix('?') else {
        return Some(PerlOutput::Text(text(stdout, head)?));
    };
    let count: usize = count.parse().ok()?;
    let texts = (0..count).map(|_| {
        let mut head = String::new();
        stdout.read_line(&mut head).ok()?;
        text(stdout, head.trim_end())
    });
    let mut texts = texts.collect::<Option<Vec<String>>>()?.into_iter();
    Some(PerlOutput::Question(texts.next()?, texts.collect()))
}

/// A text that has its number of bytes in the line before.
fn text(stdout: &mut impl BufRead, head: &str) -> Option<String> {
    let (count, mut bytes): (u64, Vec<u8>) = (head.parse().ok()?, Vec::new());
    let read = stdout.take(count).read_to_end(&mut bytes).ok()?;
    let is_whole = u64::try_from(read) == Ok(count);
    is_whole.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// A text as Perl has it.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
