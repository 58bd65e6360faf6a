// Makes re2.txt: `go run re2.go > re2.txt`. Prometheus parses an expression alone, then compiles it as ^(?s:...)$.
package main

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
)

func main() {
	expressions := []string{
		"", "a", "a|b", "web.*", ".*b", "a.b", "a\\.b", "[ab]+", "[^ab]", "[a-c]x", "(a|b)c", "(?:a|b)c", "(?P<n>a)b", "(?<n>a)b", "(?P<n>a)(?P<n>b)",
		"(?i)AB", "(?i:a)B", "a(?i)b", "(?s).", ".", "(?-s).", "(?m)^a$", "(?U)a+", "(?x) a", "(?u)a", "(?)a", "(?i-)a", "(?-)a", "(?i", "(?:",
		"a{2}", "a{2,}", "a{1,2}", "a{,2}", "a{", "a{x}", "{", "}", "a}", "a{1001}", "a{2,1}", "a{01}", "a{0}b", "a{1}{2}", "x{2}?", "a**", "a*?", "a*??", "a+*", "a?+", "*", "+a", "a|*", "(*)", "()", "(|a)", "a||b", "|", "^a$", "^*a", "$a", "a^",
		"\\d+", "\\D", "\\w+", "\\W", "\\s", "\\S", "\\bab\\b", "a\\Bb", "\\Aa\\z", "\\Za", "\\C", "\\Qa.b\\E", "\\Qa.b", "\\Q\\E*", "\\Qab\\E+", "\\pL", "\\p{Greek}", "\\p{^Greek}", "\\PL", "\\P{^L}", "\\p{Nope}", "\\pX", "\\p{L", "\\p",
		"\\x41", "\\x{41}", "\\x{110000}", "\\x4", "\\x{}", "\\101", "\\0", "\\1", "\\12", "\\8", "\\a", "\\f", "\\t", "\\n", "\\r", "\\v", "\\u0041", "\\_", "\\<", "\\>", "\\-", "\\/", "\\ ", "\\é", "\\", "\\e", "\\h", "\\G", "\\k",
		"[", "[]", "[]a]", "[^]a]", "[a", "[a-]", "[-a]", "[a-b-c]", "[b-a]", "[a-\\d]", "[\\d-a]", "[[:alpha:]]", "[[:^alpha:]]", "[[:word:]x]", "[[:nope:]]", "[[a]b]", "[a&&b]", "[a--b]", "[a~~b]", "[\\]]", "[\\w.]+", "[\\W]", "[\\D]", "[\\s]", "[\\S]", "[\\pL]", "[^\\PL]", "[\\p{Greek}a]", "[\\x41-\\x43]", "[\\b]", "[\\Q]", "[.]", "[^\\n]", "[\\-a]", "[a\\-z]", "[é-ü]", "[é]", "é", "(a", "a)", "a)(b", "((a)b)", "a#b", "a b", "a-b", "a&b", "a~b", "a<b", "a'b", "\"", "node_(cpu|memory)_.+", "(?i)straße", "(?i)K", "[[:alpha:]",
		"10\\.0\\.[0-9]{1,3}\\.\\d+", "^(web|db)[0-9]+$", "(.*)-(prod|test)", "(a+)+b", "a(?:b|c)?d", "x*", "(?i)[a-c]", ".+", ".*", "a.*|b", "[[:^word:]]", "[^[:digit:]a]",
	}
	values := []string{"", "a", "b", "ab", "aa", "a.b", "axb", "A", "AB", "aB", "web1", "web", "bc", "cb", "ac", "ax", "cx", "1", "12", "_", " ", "\n", "\t", "a\nb", "é", "ü", "α", "Ω", "{", "}", "a{", "a{,2}", "a{x}", "x{2}", "xx", "]", "[", "-", "a]", "[]", "ab]", "&", "~", "^", "$", ".", "*", "<", ">", "/", "A1", "B", "C", "c", "STRASSE", "straße", "STRAßE", "k", "\u212a", "K", "node_cpu_x", "10.0.7.12", "db7", "a-prod", "\x07", "\x0c", "\r", "\x0b", "\x00", "'", "a'b", "a#b", "a b", "a-b", "a&b", "a~b", "a<b", "\"", "ad", "abd", "a)(b", "aab", "\\", "n", "d", "a{1}{2}", "e", "u0041"}
	fmt.Println("# Made by re2.go: expression, value, whether all of the value matches.")
	for _, e := range expressions {
		if _, err := syntax.Parse(e, syntax.Perl|syntax.DotNL); err != nil {
			fmt.Printf("%s\t%s\terror\n", strconv.QuoteToASCII(e), strconv.QuoteToASCII("a"))
			continue
		}
		re, err := regexp.Compile("^(?s:" + e + ")$")
		if err != nil {
			fmt.Printf("%s\t%s\terror\n", strconv.QuoteToASCII(e), strconv.QuoteToASCII("a"))
			continue
		}
		no := 0
		for _, v := range values {
			if re.MatchString(v) {
				fmt.Printf("%s\t%s\tyes\n", strconv.QuoteToASCII(e), strconv.QuoteToASCII(v))
			} else if no < 6 || len(v) > 0 && len(e) > 0 && v[0] == e[0] {
				no++
				fmt.Printf("%s\t%s\tno\n", strconv.QuoteToASCII(e), strconv.QuoteToASCII(v))
			}
		}
	}
}
