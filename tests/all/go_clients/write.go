package main

// Requests of remote write: Prometheus' messages, sent by the client library of its project.

import (
	"context"
	"math"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/common/model"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// What the answer to a request said.
type written struct {
	Name   string            `json:"name"`
	Status int               `json:"status"`
	Header map[string]string `json:"header"`
	// What the client made of the headers.
	Samples    int    `json:"samples"`
	Histograms int    `json:"histograms"`
	Exemplars  int    `json:"exemplars"`
	Error      string `json:"error"`
}

// Adds a token, and keeps the last answer's head.
type watched struct {
	token string
	last  *http.Response
}

func (w *watched) RoundTrip(request *http.Request) (*http.Response, error) {
	request.Header.Set("Authorization", "Bearer "+w.token)
	response, err := http.DefaultTransport.RoundTrip(request)
	w.last = response
	return response, err
}

// A request with a table of symbols that all of its series share.
type builder struct {
	table  writev2.SymbolsTable
	series []writev2.TimeSeries
}

func newBuilder() *builder {
	return &builder{table: writev2.NewSymbolTable()}
}

func (b *builder) add(of writev2.TimeSeries, kind model.MetricType, help, unit string, words ...string) *builder {
	of.LabelsRefs = b.table.SymbolizeLabels(labels.FromStrings(words...), nil)
	of.Metadata = writev2.Metadata{
		Type:    writev2.FromMetadataType(kind),
		HelpRef: b.table.Symbolize(help),
		UnitRef: b.table.Symbolize(unit),
	}
	b.series = append(b.series, of)
	return b
}

func (b *builder) request() *writev2.Request {
	return &writev2.Request{Symbols: b.table.Symbols(), Timeseries: b.series}
}

func (b *builder) exemplar(v float64, t int64, words ...string) writev2.Exemplar {
	refs := b.table.SymbolizeLabels(labels.FromStrings(words...), nil)
	return writev2.Exemplar{LabelsRefs: refs, Value: v, Timestamp: t}
}

func samples(start int64, pairs ...any) writev2.TimeSeries {
	var series writev2.TimeSeries
	for i := 0; i < len(pairs); i += 2 {
		sample := writev2.Sample{Timestamp: pairs[i].(int64), Value: pairs[i+1].(float64), StartTimestamp: start}
		series.Samples = append(series.Samples, sample)
	}
	return series
}

func histograms(now int64) writev2.TimeSeries {
	whole := &histogram.Histogram{
		Schema: 1, Count: 6, Sum: 18.4, ZeroThreshold: 0.001, ZeroCount: 1,
		PositiveSpans: []histogram.Span{{Offset: 0, Length: 2}}, PositiveBuckets: []int64{2, 1},
	}
	custom := &histogram.Histogram{
		Schema: histogram.CustomBucketsSchema, Count: 5, Sum: 18.4, CustomValues: []float64{5, 10},
		PositiveSpans: []histogram.Span{{Offset: 0, Length: 2}}, PositiveBuckets: []int64{2, 1},
	}
	return writev2.TimeSeries{Histograms: []writev2.Histogram{
		writev2.FromIntHistogram(now-60000, now-3000, whole),
		writev2.FromFloatHistogram(now-60000, now-2000, whole.ToFloat(nil)),
		writev2.FromIntHistogram(now-60000, now-1000, custom),
	}}
}

// All kinds of floats, with metadata, the times of counters' starts, and exemplars.
func floats(now int64) *builder {
	b := newBuilder()
	counter := samples(now-60000, now-3000, 10.0, now-2000, 12.5, now-1000, 12.5)
	counter.Exemplars = []writev2.Exemplar{b.exemplar(1, now-2000, "trace_id", "abc"), b.exemplar(2, now-1000, "trace_id", "def")}
	b.add(counter, model.MetricTypeCounter, "Requests.", "requests", "__name__", "go_requests_total", "code", "200", "path", "/ü")
	b.add(samples(now-60000, now-1000, 1.0), model.MetricTypeCounter, "Requests.", "requests", "__name__", "go_requests_total", "code", "500", "path", "/ü")
	b.add(samples(0, now-3000, math.Inf(1), now-2000, math.Inf(-1), now-1000, math.Copysign(0, -1)),
		model.MetricTypeGauge, "A level.", "", "__name__", "go_level", "code", "200")
	b.add(samples(0, now-2000, 5e-324, now-1000, math.Float64frombits(value.NormalNaN)), model.MetricTypeUnknown, "", "", "__name__", "go_odd", "job", "go")
	b.add(samples(0, now-2000, 4.0, now-1000, math.Float64frombits(value.StaleNaN)), model.MetricTypeGauge, "Ends.", "", "__name__", "go_ended")
	for _, bound := range []string{"0.5", "+Inf"} {
		b.add(samples(now-60000, now-1000, 3.0), model.MetricTypeHistogram, "Waits.", "seconds", "__name__", "go_wait_seconds_bucket", "le", bound)
	}
	b.add(samples(now-60000, now-1000, 1.5), model.MetricTypeSummary, "Sizes.", "bytes", "__name__", "go_size_bytes", "quantile", "0.5")
	return b
}

func many(now int64) *builder {
	b := newBuilder()
	for i := range 2000 {
		series := samples(now-60000, now-3000, float64(i), now-2000, float64(i)+0.5, now-1000, float64(i)+1)
		b.add(series, model.MetricTypeCounter, "Many.", "", "__name__", "go_many_total", "of", strconv.Itoa(i), "half", strconv.Itoa(i/2))
	}
	return b
}

func old(now int64) *prompb.WriteRequest {
	return &prompb.WriteRequest{
		Timeseries: []prompb.TimeSeries{{
			Labels:    prompb.FromLabels(labels.FromStrings("__name__", "go_old", "job", "go"), nil),
			Samples:   []prompb.Sample{{Timestamp: now - 1000, Value: 7}},
			Exemplars: []prompb.Exemplar{{Value: 1, Timestamp: now - 1000}},
		}},
		Metadata: []prompb.MetricMetadata{{MetricFamilyName: "go_old", Type: prompb.MetricMetadata_GAUGE, Help: "Old."}},
	}
}

func write(url, token string, now int64) {
	transport := &watched{token: token}
	api, err := remote.NewAPI(url, remote.WithAPIHTTPClient(&http.Client{Transport: transport}), remote.WithAPIBackoff(remote.BackoffConfig{MaxRetries: 1}))
	if err != nil {
		panic(err)
	}
	partly := newBuilder()
	partly.add(samples(0, now-1000, 8.0), model.MetricTypeGauge, "", "", "__name__", "go_partly")
	partly.add(histograms(now), model.MetricTypeHistogram, "", "", "__name__", "go_native")
	both := newBuilder()
	mixed := histograms(now)
	mixed.Samples = samples(0, now-500, 2.0).Samples
	both.add(mixed, model.MetricTypeHistogram, "", "", "__name__", "go_both")
	beyond := newBuilder()
	beyond.add(samples(0, now-1000, 1.0), model.MetricTypeGauge, "", "", "__name__", "go_beyond")
	beyond.series[0].LabelsRefs[1] = 99
	exemplars := newBuilder()
	exemplars.add(writev2.TimeSeries{Exemplars: []writev2.Exemplar{exemplars.exemplar(1, now, "trace_id", "abc")}},
		model.MetricTypeCounter, "", "", "__name__", "go_requests_total", "code", "200", "path", "/ü")
	other := newBuilder()
	other.add(samples(0, now-1000, 99.0), model.MetricTypeCounter, "", "", "__name__", "go_requests_total", "code", "200", "path", "/ü")
	for _, one := range []struct {
		name    string
		version remote.WriteMessageType
		message any
	}{
		{"floats", remote.WriteV2MessageType, floats(now).request()},
		{"again", remote.WriteV2MessageType, floats(now).request()},
		{"other value", remote.WriteV2MessageType, other.request()},
		{"partly native", remote.WriteV2MessageType, partly.request()},
		{"both in a series", remote.WriteV2MessageType, both.request()},
		{"symbol beyond", remote.WriteV2MessageType, beyond.request()},
		{"exemplars alone", remote.WriteV2MessageType, exemplars.request()},
		{"many", remote.WriteV2MessageType, many(now).request()},
		{"empty", remote.WriteV2MessageType, newBuilder().request()},
		{"old", remote.WriteV1MessageType, old(now)},
	} {
		stats, err := api.Write(context.Background(), one.version, one.message)
		said := written{Name: one.name, Samples: stats.Samples, Histograms: stats.Histograms, Exemplars: stats.Exemplars, Header: map[string]string{}}
		if err != nil {
			said.Error = err.Error()
		}
		if transport.last != nil {
			said.Status = transport.last.StatusCode
			for name := range transport.last.Header {
				said.Header[name] = transport.last.Header.Get(name)
			}
		}
		say(said)
	}
}
