package main

import (
	"math"

	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

func (p *picked) Next() bool {
	p.at++
	return p.at < len(p.all)
}

func (p *picked) At() storage.Series { return p.all[p.at] }

func (*picked) Err() error { return nil }

func (*picked) Warnings() annotations.Annotations { return nil }

func bits(v float64) uint64 { return math.Float64bits(v) }

func value(bits uint64) float64 { return math.Float64frombits(bits) }
