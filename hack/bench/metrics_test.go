package main

import (
	"reflect"
	"testing"
)

func TestParseRequests(t *testing.T) {
	const metrics = `# TYPE apiserver_request_total counter
apiserver_request_total{verb="POST",group="apps",resource="deployments",subresource="",dry_run="",code="201"} 3
apiserver_request_total{verb="POST",group="apps",resource="deployments",subresource="",dry_run="All",code="201"} 50
apiserver_request_total{verb="APPLY",group="apps",resource="deployments",subresource="status",dry_run="",code="200"} 2
apiserver_request_total{verb="APPLY",group="apps",resource="deployments",subresource="status",dry_run="",code="409"} 1
apiserver_request_total{verb="GET",group="apps",resource="deployments",subresource="",dry_run="",code="200"} 50
apiserver_request_total{verb="WATCH",group="apps",resource="deployments",subresource="",dry_run="",code="200"} 50
apiserver_request_total{verb="POST",group="events.k8s.io",resource="events",subresource="",dry_run="",code="201"} 50
apiserver_request_total{verb="PUT",group="coordination.k8s.io",resource="leases",subresource="",dry_run="",code="200"} 50
apiserver_request_total{verb="POST",group="authorization.k8s.io",resource="subjectaccessreviews",subresource="",dry_run="",code="201"} 50
# TYPE etcd_requests_total counter
etcd_requests_total{operation="create",group="apps",resource="deployments"} 3
etcd_requests_total{operation="list",group="apps",resource="deployments"} 50
etcd_requests_total{operation="update",group="coordination.k8s.io",resource="leases"} 50
`
	got, err := parseRequests([]byte(metrics))
	if err != nil {
		t.Fatal(err)
	}
	want := requests{
		api:     map[string]float64{"POST deployments": 3, "APPLY deployments/status": 3},
		refused: 1,
		storage: map[string]float64{"create deployments": 3},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("parseRequests() = %+v, want %+v", got, want)
	}
}

func TestMedian(t *testing.T) {
	tests := map[string]struct {
		values []float64
		want   float64
	}{
		"of no values is nothing":                            {},
		"of an odd number is the middle one":                 {values: []float64{9, 1, 2}, want: 2},
		"of an even number is between the two in the middle": {values: []float64{9, 1, 2, 4}, want: 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := median(tt.values); got != tt.want {
				t.Errorf("median(%v) = %v, want %v", tt.values, got, tt.want)
			}
		})
	}
}
