package pipelines

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

func TestOfAClusterIsToldWhatIsWatchedThereForThePipeline(t *testing.T) {
	prod := weave.Target{Namespace: "podinfo", ClusterRef: &weave.ClusterReference{Kind: "Cluster", Name: "prod"}}
	for name, test := range map[string]struct {
		change func(*manifold.Cluster)
		seen   Seen
		lost   string
		target weave.Target
		want   string
		says   string
	}{
		"what it has":                        {change: allowed, seen: Seen{Known: true, Objects: []*unstructured.Unstructured{alone("6.1.5", nil)}}, target: prod, want: "podinfo"},
		"nothing of what Manifold has made":  {change: allowed, seen: Seen{Known: true, Objects: []*unstructured.Unstructured{alone("6.1.5", map[string]string{manifold.LabelLogicalCluster: logical})}}, target: prod},
		"nothing, where that is not allowed": {seen: Seen{Known: true, Objects: []*unstructured.Unstructured{alone("6.1.5", nil)}}, target: prod},
		"nothing of a silent one": {
			change: func(c *manifold.Cluster) { allowed(c); silent(c) }, seen: Seen{Known: true, Objects: []*unstructured.Unstructured{alone("6.1.5", nil)}}, target: prod, says: `cluster "prod" does not answer`,
		},
		"nothing for who has lost the right to it": {
			change: allowed, seen: Seen{Known: true, Objects: []*unstructured.Unstructured{alone("6.1.5", nil)}}, target: prod,
			lost: `ann list helmreleases.helm.toolkit.fluxcd.io in namespace "podinfo"`, says: "has lost the right",
		},
		"why it is not known":              {change: allowed, seen: Seen{Problem: "no right"}, target: prod, says: "no right"},
		"that it is not known yet":         {change: allowed, target: prod, says: "not known yet"},
		"nothing of the logical cluster":   {change: allowed, target: weave.Target{Namespace: "podinfo"}},
		"nothing of a cluster that is not": {change: allowed, target: weave.Target{Namespace: "podinfo", ClusterRef: &weave.ClusterReference{Kind: "Cluster", Name: "mars"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cluster("prod", test.change)
			w.pipeline(app, over)
			w.authored(`[{"user": "ann", "targets": ["prod/podinfo"]}]`)
			if test.seen.Known || test.seen.Problem != "" {
				w.there["prod"] = map[Sight]Seen{release: test.seen}
			}
			if test.lost != "" {
				w.lost = []string{test.lost}
			}
			w.look()
			p, err := w.pipelineOf(t.Context(), podinfo)
			if err != nil {
				t.Fatal(err)
			}
			reads := len(w.reads)
			objects, problem := w.Alone(t.Context(), p, test.target)
			var got []string
			for _, o := range objects {
				got = append(got, o.GetName())
			}
			if strings.Join(got, " ") != test.want || (problem == "") != (test.says == "") || !strings.Contains(problem, test.says) {
				t.Errorf("told of are %v and %q, want %q and %q", got, problem, test.want, test.says)
			}
			if len(w.reads) != reads {
				t.Errorf("somebody was asked for %v", w.reads[reads:])
			}
		})
	}
}
