package decide_test

import (
	"testing"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
)

func TestFound(t *testing.T) {
	for name, test := range map[string]struct {
		numbered bool
		loose    []decide.Loose
		want     placement.Decision
	}{
		"nothing is there": {},
		"pods are counted where they are": {
			loose: []decide.Loose{{Cluster: "east", Replicas: 1}, {Cluster: "west", Replicas: 1}, {Cluster: "east", Replicas: 1}},
			want:  placement.Decision{"east": {Replicas: 2}, "west": {Replicas: 1}},
		},
		"a ReplicaSet scaled to nothing is somewhere too": {
			loose: []decide.Loose{{Cluster: "east"}}, want: placement.Decision{"east": {}},
		},
		"numbers make a range in each cluster": {
			numbered: true,
			loose:    []decide.Loose{{Cluster: "west", Ordinal: 3}, {Cluster: "east", Ordinal: 0}, {Cluster: "east", Ordinal: 1}, {Cluster: "west", Ordinal: 2}},
			want:     placement.Decision{"east": {Replicas: 2}, "west": {Start: 2, Replicas: 2}},
		},
		"a number that is missing belongs to who has those around it": {
			numbered: true,
			loose:    []decide.Loose{{Cluster: "east", Ordinal: 0}, {Cluster: "east", Ordinal: 2}},
			want:     placement.Decision{"east": {Replicas: 3}},
		},
		"who begins earlier keeps what it has": {
			numbered: true,
			loose:    []decide.Loose{{Cluster: "east", Ordinal: 0}, {Cluster: "east", Ordinal: 2}, {Cluster: "west", Ordinal: 1}, {Cluster: "west", Ordinal: 3}},
			want:     placement.Decision{"east": {Replicas: 3}, "west": {Start: 3, Replicas: 1}},
		},
		"what another has all of is no range": {
			numbered: true,
			loose:    []decide.Loose{{Cluster: "east", Ordinal: 0}, {Cluster: "east", Ordinal: 2}, {Cluster: "west", Ordinal: 1}},
			want:     placement.Decision{"east": {Replicas: 3}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide.Found(placement.Workload{Ordinals: test.numbered}, test.loose); !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
