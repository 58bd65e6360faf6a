//! Configurations whose communities, keys and passphrases are a marker, each with one byte removed or inserted. No message about
//! them may contain the marker.

use crate::mrtg_cfg::{Config, MemoryFiles, Problems, Secrets, Trace, read, read_traced};
use std::fmt::Write as _;

/// The marker: each secret of [`CONFIGURATIONS`].
const MARK: &str = "s3cr3t";

/// Typical configurations.
const CONFIGURATIONS: [&str; 4] = [
    "WorkDir: /tmp\nLogFormat: rrdtool\nInterval: 5\nInclude: /i\nRRDCached: unix:/run/rrdcached.sock\n\
     Target[a]: 2:s3cr3t@10.0.0.1\nMaxBytes[a]: 1250000\nTitle[a]: Core -- Gi0/1\nPageTop[a]: <h1>Core</h1>\nOptions[a]: growright, bits\n\
     Target[b]:#Gi0/2:s3cr3t@core.example.net:161:2:5:1:2\nMaxBytes[b]: 1250000\nTitle[b]: b\n",
    "LogDir: /tmp\nHtmlDir: /tmp\nImageDir: /tmp\nEnableIPv6: yes\nEnableSnmpV3: yes\n\
     SnmpOptions: retries => 2, username => 'u', authpassword => 's3cr3t', privpassword => \"s3cr3t\", timeout => 2\n\
     Target[v3]: 2:u@router:::::3\nSnmpOptions[v3]: authkey=>'s3cr3t',privkey=>'s3cr3t'\nMaxBytes[v3]: 9\nTitle[v3]: x\n\
     Target[v6]:2:s3cr3t@[fd00::1]:161\nMaxBytes[v6]: 9\nTitle[v6]: y\nRouterName[v6]: sysName:s3cr3t@[fd00::1]\n",
    "WorkDir: /tmp\nMaxBytes[_]: 9\nTitle[_]: t\nTitle[^]: p\n\
     Target[sum]: 1:s3cr3t@h + 2:s3cr3t@h\n   * 8\nTarget[oids]: 1.3.6.1.2.1.2.2.1.10.1&ifOutOctets.1:s3cr3t@h:161::2\n\
     Target[odd]: ifInErrors#e\\:0&.1.3.6.5\\d:s3cr3t\\@x@h\nTarget[name]: ssCpuRawIdle.0&ssCpuRawUser.0:s3cr3t@h|octets\n",
    "WorkDir: /tmp\nMaxBytes[_]: 9\nTitle[_]: t\nPathAdd: /usr/bin\n\
     Target[command]: `snmpget -v2c -c s3cr3t h .1.3`\nTarget[both]: `probe --community=s3cr3t` + 1:s3cr3t@h\nThreshDesc[both]: none\n",
];

/// The first byte chooses a configuration, the next two a place in it. The fourth byte is inserted there, or 0 removes a byte.
pub fn fuzz_mrtg_secrets(input: &[u8]) {
    let [which, high, low, byte, rest @ ..] = input else {
        return;
    };
    let text = CONFIGURATIONS[usize::from(*which) % CONFIGURATIONS.len()];
    let at = usize::from(u16::from_be_bytes([*high, *low])) % text.len();
    let mut changed = text.as_bytes().to_vec();
    match byte {
        0 => drop(changed.remove(at)),
        byte => changed.insert(at, *byte),
    }
    // Further input is appended to the configuration.
    changed.extend_from_slice(rest);
    assert_hidden(&changed);
}

fn assert_hidden(text: &[u8]) {
    let messages = all_messages(text);
    assert!(
        !messages.contains(MARK),
        "{}\nsays\n{messages}",
        String::from_utf8_lossy(text)
    );
}

/// All messages of --check, of --debug, and of a poller's start.
fn all_messages(text: &[u8]) -> String {
    let mut files = MemoryFiles::default();
    files.add("m", text);
    files.add("/i", b"# nothing\n");
    let mut messages = String::new();
    put_read(&mut messages, &read(b"m", &mut files));
    let mut steps = Vec::new();
    let mut say =
        |word: &str, message: &[u8]| steps.extend_from_slice(&[word.as_bytes(), message].concat());
    let traced = read_traced(b"m", &mut files, &mut Trace::On(Secrets::Masked, &mut say));
    put_read(&mut messages, &traced);
    messages.push_str(&String::from_utf8_lossy(&steps));
    messages
}

fn put_read(messages: &mut String, read: &Result<Config, Problems>) {
    // Writing to a String cannot fail.
    let _ = match read {
        Ok(config) => {
            let mut dump = Vec::new();
            config
                .targets()
                .for_each(|target| target.put_dump(Secrets::Masked, &mut dump));
            messages.push_str(&String::from_utf8_lossy(&dump));
            config
                .left_out()
                .iter()
                .for_each(|left_out| messages.push_str(&left_out.to_string()));
            write!(messages, "{:?}", config.warnings())
        }
        Err(problems) => {
            problems
                .0
                .iter()
                .for_each(|problem| messages.push_str(&problem.to_string()));
            Ok(())
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_missing_or_added_byte_shows_a_secret() {
        let bytes = b"\0 \t\n:;,@#=>[]()'\"`\\/&|*-+.$1Ma_^";
        for (which, configuration) in (0..).zip(CONFIGURATIONS) {
            for at in 0..configuration.len() {
                for byte in bytes {
                    let [high, low] = u16::try_from(at).unwrap().to_be_bytes();
                    fuzz_mrtg_secrets(&[which, high, low, *byte]);
                }
            }
        }
    }

    /// A title without its line end includes the next line; a message shows no more than the keyword.
    #[test]
    fn a_line_without_its_colon_shows_its_keyword() {
        for (line, message) in [
            (
                "Target[a] 2:s3cr3t@h",
                "cannot take m line 2: \"Target...\" does not make sense: a line is Keyword[name]: value, or Keyword: value",
            ),
            (
                "s3cr3t@h",
                "cannot take m line 2: \"...\" does not make sense: a line is Keyword[name]: value, or Keyword: value",
            ),
            (
                "Titel[a]: x",
                "cannot take m line 2: unknown keyword; is Title meant?",
            ),
            (
                "MaxByte[a]: 9",
                "cannot take m line 2: unknown keyword; is MaxBytes meant?",
            ),
            ("s3cr3t[a]: x", "cannot take m line 2: unknown keyword"),
            ("s3cr3t@h:161: x", "cannot take m line 2: unknown keyword"),
            (
                "LogDir: /tmp/s3cr3t@h",
                "cannot take m line 2: LogDir: is not a directory",
            ),
        ] {
            let text = format!("WorkDir: /tmp\n{line}\n");
            assert_eq!(all_messages(text.as_bytes()), message.repeat(2), "{line}");
        }
    }
}
