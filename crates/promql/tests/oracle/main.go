package main

import (
	"bufio"
	"encoding/json"
	"os"

	"github.com/prometheus/prometheus/promql/parser"
)

type answer struct {
	Shown  string `json:"shown,omitempty"`
	Pretty string `json:"pretty,omitempty"`
	Error  string `json:"error,omitempty"`
	Start  int    `json:"start"`
	End    int    `json:"end"`
}

func main() {
	p := parser.NewParser(parser.Options{})
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for {
		var text string
		if in.Decode(&text) != nil {
			return
		}
		expr, err := p.ParseExpr(text)
		var a answer
		if err != nil {
			a.Error = err.Error()
			if list, ok := err.(parser.ParseErrors); ok && len(list) > 0 {
				a.Start, a.End = int(list[0].PositionRange.Start), int(list[0].PositionRange.End)
			}
		} else {
			a.Shown, a.Pretty = expr.String(), parser.Prettify(expr)
			r := expr.PositionRange()
			a.Start, a.End = int(r.Start), int(r.End)
		}
		out.Encode(a)
	}
}
