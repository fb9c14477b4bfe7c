package placement

import "testing"

func TestFound(t *testing.T) {
	for name, test := range map[string]struct {
		numbered bool
		loose    []Loose
		want     Decision
	}{
		"nothing is there": {},
		"pods are counted where they are": {
			loose: []Loose{{Cluster: "east", Replicas: 1}, {Cluster: "west", Replicas: 1}, {Cluster: "east", Replicas: 1}},
			want:  Decision{"east": {Replicas: 2}, "west": {Replicas: 1}},
		},
		"a ReplicaSet scaled to nothing is somewhere too": {
			loose: []Loose{{Cluster: "east"}}, want: Decision{"east": {}},
		},
		"numbers make a range in each cluster": {
			numbered: true,
			loose:    []Loose{{Cluster: "west", Number: 3}, {Cluster: "east", Number: 0}, {Cluster: "east", Number: 1}, {Cluster: "west", Number: 2}},
			want:     Decision{"east": {Replicas: 2}, "west": {Start: 2, Replicas: 2}},
		},
		"a number that is missing belongs to who has those around it": {
			numbered: true,
			loose:    []Loose{{Cluster: "east", Number: 0}, {Cluster: "east", Number: 2}},
			want:     Decision{"east": {Replicas: 3}},
		},
		"who begins earlier keeps what it has": {
			numbered: true,
			loose:    []Loose{{Cluster: "east", Number: 0}, {Cluster: "east", Number: 2}, {Cluster: "west", Number: 1}, {Cluster: "west", Number: 3}},
			want:     Decision{"east": {Replicas: 3}, "west": {Start: 3, Replicas: 1}},
		},
		"what another has all of is no range": {
			numbered: true,
			loose:    []Loose{{Cluster: "east", Number: 0}, {Cluster: "east", Number: 2}, {Cluster: "west", Number: 1}},
			want:     Decision{"east": {Replicas: 3}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Found(Workload{Numbered: test.numbered}, test.loose); !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
