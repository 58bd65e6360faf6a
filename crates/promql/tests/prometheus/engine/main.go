// Evaluates expressions with Prometheus' engine: the first line of the input has series, each other one a question.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

type series struct {
	Labels map[string]string `json:"labels"`
	Times  []int64           `json:"times"`
	// Bits of the values, so that none is rounded.
	Bits []string `json:"bits"`
}

type question struct {
	Text              string `json:"text"`
	From, Thru, Step int64
}

type answer struct {
	Error  string   `json:"error"`
	Series []series `json:"series"`
	Notes  []string `json:"notes"`
}

type picked struct {
	all []storage.Series
	at  int
}

func bitsOf(v float64) string {
	return strconv.FormatUint(bits(v), 16)
}

func one(m labels.Labels, points []promql.FPoint) series {
	s := series{Labels: m.Map(), Times: []int64{}, Bits: []string{}}
	for _, p := range points {
		s.Times = append(s.Times, p.T)
		s.Bits = append(s.Bits, bitsOf(p.F))
	}
	return s
}

func load(all []series) storage.Queryable {
	var kept []*promql.StorageSeries
	for _, s := range all {
		points := make([]promql.FPoint, len(s.Times))
		for i, t := range s.Times {
			v, err := strconv.ParseUint(s.Bits[i], 16, 64)
			if err != nil {
				panic(err)
			}
			points[i] = promql.FPoint{T: t, F: value(v)}
		}
		kept = append(kept, promql.NewStorageSeries(promql.Series{Metric: labels.FromMap(s.Labels), Floats: points}))
	}
	pick := func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		set := &picked{at: -1}
		for _, s := range kept {
			fits := true
			for _, m := range matchers {
				fits = fits && m.Matches(s.Labels().Get(m.Name))
			}
			if fits {
				set.all = append(set.all, s)
			}
		}
		return set
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: pick}}
}

func evaluate(engine *promql.Engine, store storage.Queryable, q question) answer {
	ctx := context.Background()
	var query promql.Query
	var err error
	if q.Step == 0 {
		query, err = engine.NewInstantQuery(ctx, store, nil, q.Text, time.UnixMilli(q.From))
	} else {
		step := time.Duration(q.Step) * time.Millisecond
		query, err = engine.NewRangeQuery(ctx, store, nil, q.Text, time.UnixMilli(q.From), time.UnixMilli(q.Thru), step)
	}
	if err != nil {
		return answer{Error: err.Error()}
	}
	defer query.Close()
	result := query.Exec(ctx)
	if result.Err != nil {
		return answer{Error: result.Err.Error()}
	}
	a := answer{Series: []series{}}
	warnings, infos := result.Warnings.AsStrings(q.Text, 0, 0)
	a.Notes = append(warnings, infos...)
	switch v := result.Value.(type) {
	case promql.Scalar:
		a.Series = append(a.Series, one(labels.EmptyLabels(), []promql.FPoint{{T: v.T, F: v.V}}))
	case promql.Vector:
		for _, s := range v {
			a.Series = append(a.Series, one(s.Metric, []promql.FPoint{{T: s.T, F: s.F}}))
		}
	case promql.Matrix:
		for _, s := range v {
			a.Series = append(a.Series, one(s.Metric, s.Floats))
		}
	}
	return a
}

func main() {
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples:               50_000_000,
		Timeout:                  time.Minute,
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 60_000 },
		Parser:                   parser.NewParser(parser.Options{}),
	})
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	var all []series
	if err := in.Decode(&all); err != nil {
		panic(err)
	}
	store := load(all)
	for {
		var q question
		if in.Decode(&q) != nil {
			return
		}
		out.Encode(evaluate(engine, store, q))
	}
}
