package main

import (
	"bytes"
	"fmt"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// requests counts what a logical cluster was asked to write, by "verb resource".
type requests struct {
	// api counts calls of its API, whatever became of them.
	api map[string]float64
	// refused counts those of them that were answered with an error.
	refused float64
	// storage counts changes of its storage; nil if the server does not tell.
	storage map[string]float64
}

// writeVerbs are the verbs that change something, as the metrics call them.
var writeVerbs = map[string]bool{
	"POST": true, "PUT": true, "PATCH": true, "APPLY": true, "DELETE": true, "DELETECOLLECTION": true,
}

// storageWrites are the operations on the storage that change something.
var storageWrites = map[string]bool{"create": true, "update": true, "delete": true}

// uncounted are the resources that are no cost of a Deployment: events, leases and the addresses of API servers come and go by
// themselves, and reviews are questions that are asked by POST.
func uncounted(resource string) bool {
	switch resource {
	case "events", "leases", "apiServerIPInfo", "apiServerPeerIPInfo":
		return true
	}
	return strings.HasSuffix(resource, "reviews")
}

func parseRequests(metrics []byte) (requests, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(metrics))
	if err != nil {
		return requests{}, fmt.Errorf("parse the metrics: %w", err)
	}
	r := requests{api: map[string]float64{}}
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		labels := labelsOf(metric)
		if !writeVerbs[labels["verb"]] || uncounted(labels["resource"]) || labels["dry_run"] != "" {
			continue
		}
		name := labels["verb"] + " " + labels["resource"]
		if labels["subresource"] != "" {
			name += "/" + labels["subresource"]
		}
		r.api[name] += metric.GetCounter().GetValue()
		if labels["code"] >= "400" {
			r.refused += metric.GetCounter().GetValue()
		}
	}
	if family, ok := families["etcd_requests_total"]; ok {
		r.storage = map[string]float64{}
		for _, metric := range family.GetMetric() {
			labels := labelsOf(metric)
			if storageWrites[labels["operation"]] && !uncounted(labels["resource"]) {
				r.storage[labels["operation"]+" "+labels["resource"]] += metric.GetCounter().GetValue()
			}
		}
	}
	return r, nil
}

func labelsOf(metric *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

// since returns what was counted since an earlier time, divided by n. What did not change is left out.
func since(later, earlier map[string]float64, n int) map[string]float64 {
	if later == nil {
		return nil
	}
	difference := map[string]float64{}
	for name, value := range later {
		if d := value - earlier[name]; d != 0 {
			difference[name] = d / float64(n)
		}
	}
	return difference
}

func sum(counts map[string]float64) float64 {
	var total float64
	for _, value := range counts {
		total += value
	}
	return total
}
