package main

// Questions of Prometheus' HTTP API, by the library on which promtool's queries stand, and the check of `promtool check
// metrics`.

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/api"
	"github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// What a question gave.
type answered struct {
	Name     string      `json:"name"`
	Value    any         `json:"value"`
	Warnings v1.Warnings `json:"warnings"`
	Infos    v1.Infos    `json:"infos"`
	Error    string      `json:"error"`
	// Of Prometheus' errors.
	ErrorType v1.ErrorType `json:"error_type"`
}

func tell(name string, value any, warnings v1.Warnings, infos v1.Infos, err error) {
	said := answered{Name: name, Value: value, Warnings: warnings, Infos: infos}
	if err != nil {
		said.Value = nil
		said.Error = err.Error()
		var of *v1.Error
		if errors.As(err, &of) {
			said.ErrorType = of.Type
		}
	}
	say(said)
}

func checked(name, address string) {
	response, err := http.Get(address)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	problems, err := promlint.New(response.Body).Lint()
	found := map[string][]string{}
	for _, problem := range problems {
		found[problem.Text] = append(found[problem.Text], problem.Metric)
	}
	// What is left was not read.
	rest, _ := io.ReadAll(response.Body)
	if err == nil && len(rest) > 0 {
		err = errors.New("a rest")
	}
	tell(name, found, nil, nil, err)
}

func ask(address string, seconds int64) {
	client, err := api.NewClient(api.Config{Address: address})
	if err != nil {
		panic(err)
	}
	prometheus, ctx := v1.NewAPI(client), context.Background()
	end := time.Unix(seconds, 0)
	start := end.Add(-8 * time.Second)
	cpu := []string{"node_cpu_seconds_total"}
	loads := []string{"node_load1", "node_load5", "node_load15"}

	value, warnings, infos, err := prometheus.Query(ctx, "node_memory_MemTotal_bytes", end)
	tell("query", value, warnings, infos, err)
	value, warnings, infos, err = prometheus.Query(ctx, "node_load1[5s]", end, v1.WithTimeout(10*time.Second), v1.WithLookbackDelta(time.Minute))
	tell("query a range", value, warnings, infos, err)
	value, warnings, infos, err = prometheus.Query(ctx, "1 + 1", end)
	tell("query a number", value, warnings, infos, err)
	value, warnings, infos, err = prometheus.Query(ctx, "node_cpu_seconds_total", end, v1.WithLimit(2))
	tell("query with a limit", value, warnings, infos, err)
	value, warnings, infos, err = prometheus.Query(ctx, "rate(node_load1[5s])", end)
	tell("query with a note", value, warnings, infos, err)
	_, _, _, err = prometheus.Query(ctx, "sum(", end)
	tell("query no expression", nil, nil, nil, err)
	_, _, _, err = prometheus.Query(ctx, "node_cpu_seconds_total * on () node_cpu_seconds_total", end)
	tell("query without a value", nil, nil, nil, err)
	value, warnings, infos, err = prometheus.QueryRange(ctx, "count(node_cpu_seconds_total)", v1.Range{Start: start, End: end, Step: 2 * time.Second})
	tell("range", value, warnings, infos, err)
	_, _, _, err = prometheus.QueryRange(ctx, "up", v1.Range{Start: end, End: start, Step: time.Second})
	tell("range backwards", nil, nil, nil, err)
	names, warnings, infos, err := prometheus.LabelNames(ctx, cpu, start, end)
	tell("label names", names, warnings, infos, err)
	values, warnings, infos, err := prometheus.LabelValues(ctx, "__name__", loads, start, end)
	tell("label values", values, warnings, infos, err)
	values, warnings, infos, err = prometheus.LabelValues(ctx, "__name__", loads, start, end, v1.WithLimit(1))
	tell("label values with a limit", values, warnings, infos, err)
	series, warnings, infos, err := prometheus.Series(ctx, loads, start, end)
	tell("series", series, warnings, infos, err)
	metadata, err := prometheus.Metadata(ctx, "node_load1", "")
	tell("metadata", metadata, nil, nil, err)
	exemplars, err := prometheus.QueryExemplars(ctx, "node_load1", start, end)
	tell("exemplars", exemplars, nil, nil, err)
	build, err := prometheus.Buildinfo(ctx)
	tell("build", build, nil, nil, err)
	flags, err := prometheus.Flags(ctx)
	tell("flags", flags, nil, nil, err)
	targets, err := prometheus.Targets(ctx)
	tell("targets", targets, nil, nil, err)
	rules, err := prometheus.Rules(ctx, nil)
	tell("rules", rules, nil, nil, err)
	alerts, err := prometheus.Alerts(ctx)
	tell("alerts", alerts, nil, nil, err)
	text, err := prometheus.FormatQuery(ctx, "sum by(mode)(rate(node_cpu_seconds_total[1m]))")
	tell("format", text, nil, nil, err)
	_, err = prometheus.Snapshot(ctx, true)
	tell("snapshot", nil, nil, nil, err)
	config, err := prometheus.Config(ctx)
	tell("config", config, nil, nil, err)
	runtime, err := prometheus.Runtimeinfo(ctx)
	tell("runtime", runtime, nil, nil, err)
	managers, err := prometheus.AlertManagers(ctx)
	tell("alertmanagers", managers, nil, nil, err)
	ofTargets, err := prometheus.TargetsMetadata(ctx, "", "", "")
	tell("metadata of targets", ofTargets, nil, nil, err)
	_, err = prometheus.TSDB(ctx)
	tell("tsdb", nil, nil, nil, err)

	checked("metrics", address+"/metrics")
	checked("federate", address+"/federate?match[]="+url.QueryEscape("{job=~\"node|kymo\"}"))
}
