// Reads expressions, a JSON string a line, with Prometheus' own parser and answers a JSON object a line: the canonical
// text, the text of several lines, the tree and the bytes of the expression; or the first error and its bytes.
//
// The test that builds this puts translateAST beside it, from Prometheus' web/api/v1.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"log"
	"os"

	"github.com/prometheus/prometheus/promql/parser"
)

type answer struct {
	Shown   string
	Pretty  string
	Tree    any
	Message string
	Start   int
	End     int
	Spans   [][2]int
}

// spans are the bytes of each node, parents before their children.
func spans(expr parser.Expr) [][2]int {
	var found [][2]int
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if node != nil {
			place := node.PositionRange()
			found = append(found, [2]int{int(place.Start), int(place.End)})
		}
		return nil
	})
	return found
}

func read(p parser.Parser, text string) answer {
	expr, err := p.ParseExpr(text)
	if err == nil {
		place := expr.PositionRange()
		return answer{
			Shown:  expr.String(),
			Pretty: parser.Prettify(expr),
			Tree:   translateAST(expr),
			Start:  int(place.Start),
			End:    int(place.End),
			Spans:  spans(expr),
		}
	}
	var list parser.ParseErrors
	if !errors.As(err, &list) || len(list) == 0 {
		return answer{Message: err.Error()}
	}
	first := list[0]
	return answer{
		Message: first.Err.Error(),
		Start:   int(first.PositionRange.Start),
		End:     int(first.PositionRange.End),
	}
}

func main() {
	p := parser.NewParser(parser.Options{})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var text string
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
			log.Fatal(err)
		}
		if err := out.Encode(read(p, text)); err != nil {
			log.Fatal(err)
		}
	}
}
