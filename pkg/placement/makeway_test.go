package placement

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

const stronger = "Deployment shop/stronger"

// displaced tells that the workload may keep so many replicas in a cluster.
func (b *requestBuilder) displaced(cluster string, keep int32) *requestBuilder {
	b.Displaced = map[string]Displaced{cluster: {Keep: keep, By: stronger}}
	return b
}

func TestMakesWayForHigherPriority(t *testing.T) {
	divided := func(replicas int32) *requestBuilder { return deployment(replicas).dividedBy(v1alpha1.ByCapacity) }
	for name, test := range map[string]struct {
		clusters Snapshot
		request  *requestBuilder
		want     Decision
		note     string
	}{
		"what has room elsewhere goes there": {
			clusters: snapshot(cluster("east", 0), cluster("west", 5)),
			request:  divided(3).on(shares("east", 3)).displaced("east", 1), want: shares("east", 1, "west", 2),
		},
		"what has none stays": {
			clusters: snapshot(cluster("east", 0), cluster("west", 1)),
			request:  divided(3).on(shares("east", 3)).displaced("east", 0), want: shares("east", 2, "west", 1),
			note: "these should make room for what has a higher priority, and no other cluster can take them: 2 on east for " + stronger,
		},
		"what is whole goes whole": {
			clusters: snapshot(cluster("east", 0), cluster("west", 3)),
			request:  deployment(3).on(shares("east", 3)).displaced("east", 2), want: shares("west", 3),
		},
		"or stays whole": {
			clusters: snapshot(cluster("east", 0), cluster("west", 2)),
			request:  deployment(3).on(shares("east", 3)).displaced("east", 2), want: shares("east", 3),
			note: "1 on east for " + stronger,
		},
		"room in the same cluster is not for it": {
			clusters: snapshot(cluster("east", 9), cluster("west", 0)),
			request:  divided(3).on(shares("east", 3)).displaced("east", 0), want: shares("east", 3),
			note: "3 on east for " + stronger,
		},
		"even shares become uneven": {
			clusters: snapshot(cluster("east", 0), cluster("west", 5)),
			request:  deployment(4).dividedBy(v1alpha1.ByEven).on(shares("east", 2, "west", 2)).displaced("east", 1), want: shares("east", 1, "west", 3),
		},
		"what is kept together overflows": {
			clusters: snapshot(cluster("east", 0), cluster("west", 5)),
			request:  deployment(3).keptTogether().near(Neighbours{"east": 9}).on(shares("east", 3)).displaced("east", 2), want: shares("east", 2, "west", 1),
			note: "1 of 3 replicas are not there: it makes room for " + stronger,
		},
		"a pin is obeyed": {
			clusters: snapshot(cluster("east", 0), cluster("west", 5)),
			request:  deployment(3).pinned("east").on(shares("east", 3)).displaced("east", 0), want: shares("east", 3),
		},
		"each copy stays": {
			clusters: snapshot(cluster("east", 0), cluster("west", 5)),
			request:  deployment(3).duplicated().on(shares("east", 3, "west", 3)).displaced("east", 0), want: shares("east", 3, "west", 3),
		},
		"what has volumes stays with them": {
			clusters: snapshot(cluster("east", 0), cluster("west", 5)),
			request: func() *requestBuilder {
				b := statefulSet(2).on(shares("east", 2)).displaced("east", 0)
				b.Workload.Numbered, b.Workload.Tied = true, map[string]bool{"east": true}
				return b
			}(), want: shares("east", 2),
		},
		"what keeps less already stays": {
			clusters: snapshot(cluster("east", 0), cluster("west", 5)),
			request:  divided(3).on(shares("east", 1, "west", 2)).displaced("east", 1), want: shares("east", 1, "west", 2),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Place(test.clusters, test.request.Request)
			if !got.Decision.Equal(test.want) {
				t.Errorf("got %s, want %s: %s", got.Decision, test.want, got.Message())
			}
			if notes := strings.Join(got.Notes, "; "); !strings.Contains(notes, test.note) || test.note == "" && strings.Contains(notes, stronger) {
				t.Errorf("notes %q, want %q", notes, test.note)
			}
			if len(got.Failures) > 0 {
				t.Errorf("the cluster counts as one that could not schedule: %v", got.Failures)
			}
		})
	}
}

// What is displaced loses nothing, and leaves a cluster only for one that has room.
func TestDisplacedReplicasLoseNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	for range 20000 {
		clusters, req := randomPlacement(r)
		s := NewSnapshot(clusters)
		req.Current = Place(s, req).Decision
		s = NewSnapshot(used(clusters, Request{Workload: req.Workload, Current: Decision{}}, req.Current))
		if req.Current.Total() == 0 || req.Current.Total() < int64(req.Workload.Replicas) || !Place(s, req).Decision.Equal(req.Current) {
			continue
		}
		from := req.Current.Clusters()[r.IntN(len(req.Current))]
		keep := r.Int32N(req.Current[from].Replicas + 1)
		req.Displaced = map[string]Displaced{from: {Keep: keep, By: stronger}}
		got := Place(s, req)
		if got.Decision.Total() < req.Current.Total() {
			t.Fatalf("%s becomes %s, to keep %d on %s\nclusters %+v\nrequest %+v", req.Current, got.Decision, keep, from, clusters, req)
		}
		for _, c := range s.clusters {
			before, after := req.Current[c.Name].Replicas, got.Decision[c.Name].Replicas
			if after > before && int64(after-before) > req.roomIn(c) {
				t.Fatalf("%s becomes %s without room on %s, to keep %d on %s", req.Current, got.Decision, c.Name, keep, from)
			}
		}
		if after := got.Decision[from].Replicas; after < keep && after < req.Current[from].Replicas && got.Strategy != Whole && got.Strategy != Duplicate {
			t.Fatalf("%s keeps %d on %s, and %d were asked for", got.Decision, after, from, keep)
		}
	}
}
