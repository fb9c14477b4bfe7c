package app

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/cli/app/manifests"
)

// world has these objects, and applies manifests as they are but for those that it refuses.
type world struct {
	live    map[string]string
	refused string
	tried   int
}

func (w *world) Live(_ context.Context, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	value, there := w.live[manifest.GetName()]
	if !there {
		return nil, nil
	}
	out := manifest.DeepCopy()
	return out, unstructured.SetNestedField(out.Object, value, "data", "value")
}

func (w *world) Applied(_ context.Context, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	w.tried++
	if manifest.GetName() == w.refused {
		return nil, errors.New("forbidden:\x1b[2J no right to patch")
	}
	return manifest.DeepCopy(), nil
}

func configMap(name, value string) string {
	return `{"apiVersion":"v1","data":{"value":"` + value + `"},"kind":"ConfigMap","metadata":{"name":"` + name + `"}}`
}

// holding gives a revision these manifests by target.
func holding(t *testing.T, of *v1alpha1.ApplicationRevision, targets []string, manifests ...[]string) *v1alpha1.ApplicationRevision {
	t.Helper()
	there := map[string]bool{}
	for i, name := range targets {
		target := v1alpha1.RevisionTarget{Name: name}
		for _, manifest := range manifests[i] {
			hash, err := v1alpha1.HashManifest([]byte(manifest))
			if err != nil {
				t.Fatal(err)
			}
			target.Objects = append(target.Objects, hash)
			if !there[hash] {
				there[hash] = true
				of.Spec.Objects = append(of.Spec.Objects, v1alpha1.RevisionObject{Hash: hash, Manifest: &runtime.RawExtension{Raw: []byte(manifest)}})
			}
		}
		target.Hash = v1alpha1.HashObjects(target.Objects)
		of.Spec.Targets = append(of.Spec.Targets, target)
	}
	of.Spec.Hash = v1alpha1.HashRevision(of.Spec.Targets)
	return of
}

func TestPlan(t *testing.T) {
	all := []string{"hoge", "fuga", "eu"}
	v7 := holding(t, revision("web", 7), all,
		[]string{configMap("web", "1"), configMap("old", "1")}, []string{configMap("web", "1"), configMap("old", "1")}, []string{configMap("web", "eu")})
	v8 := holding(t, revision("web", 8), all,
		[]string{configMap("web", "2"), configMap("new", "1")}, []string{configMap("web", "2"), configMap("new", "1")}, []string{configMap("web", "eu")})
	for name, test := range map[string]struct {
		world        world
		prune, drift bool
		spec         *v1alpha1.Drift
		from         string
		tried        int
		differs      bool
		wantError    bool
	}{
		"as targets have it":       {from: "web-v7", world: world{live: map[string]string{"web": "3"}}, tried: 3, differs: true},
		"what is gone is pruned":   {from: "web-v7", prune: true, world: world{live: map[string]string{"web": "3"}}, tried: 3, differs: true},
		"as nothing is known":      {world: world{live: map[string]string{"web": "eu"}}, tried: 3, differs: true},
		"a revision that is gone":  {from: "web-v6", world: world{live: map[string]string{"web": "eu"}}, tried: 3, differs: true},
		"nothing changes":          {from: "web-v8"},
		"what is refused is named": {from: "web-v7", world: world{refused: "new"}, tried: 3, differs: true, wantError: true},
		"what somebody has changed": {
			from: "web-v8", drift: true, world: world{live: map[string]string{"web": "by hand", "new": "1"}}, tried: 3, differs: true,
		},
		"what is ignored is no drift": {
			from: "web-v8", drift: true, world: world{live: map[string]string{"web": "by hand", "new": "1"}}, tried: 3,
			spec: &v1alpha1.Drift{Ignore: []v1alpha1.DriftIgnore{{Name: "web", JSONPointers: []string{"/data/value"}}}},
		},
		"what one of the targets has is no drift": {
			from: "web-v8", drift: true, world: world{live: map[string]string{"web": "eu", "new": "1"}}, tried: 3,
		},
		"what is gone above is drift": {from: "web-v8", drift: true, world: world{live: map[string]string{"web": "2"}}, tried: 3, differs: true},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewSimpleClientset(v7, v8)
			p := newPlanner(manifests.New(t.Context(), client, kubefake.NewSimpleClientset()), &test.world, "shop")
			p.prunes, p.drift, p.spec = prunes{all: test.prune, why: leftUnset}, test.drift, test.spec
			found := &plan{Application: "web", Revision: "web-v8"}
			for _, target := range all {
				found.Targets = append(found.Targets, p.target(t.Context(), target, test.from, "web-v8"))
			}
			p.withoutOverlays(found.Targets)
			var out strings.Builder
			if err := found.print(&out); err != nil {
				t.Fatal(err)
			}
			golden(t, "plan-"+strings.ReplaceAll(name, " ", "-"), out.String())
			if found.differs() != test.differs || (found.failed() != nil) != test.wantError {
				t.Errorf("it differs: %t, %v; want %t, an error: %t", found.differs(), found.failed(), test.differs, test.wantError)
			}
			if test.world.tried != test.tried {
				t.Errorf("%d manifests were tried, want each of %d once", test.world.tried, test.tried)
			}
		})
	}
}

func TestARevisionThatIsNotWholeTellsNothing(t *testing.T) {
	broken := holding(t, revision("web", 8), []string{"hoge"}, []string{configMap("web", "2")})
	broken.Spec.Objects = nil
	p := newPlanner(manifests.New(t.Context(), fake.NewSimpleClientset(broken), kubefake.NewSimpleClientset()), &world{}, "shop")
	found := &plan{Application: "web", Revision: "web-v8", Targets: []planTarget{p.target(t.Context(), "hoge", "", "web-v8")}}
	if err := found.failed(); err == nil || !strings.Contains(found.Targets[0].Error, "is not what the revision was made of") {
		t.Errorf("got %v with %+v, want an error", err, found.Targets)
	}
}

func TestAPlanTellsWhichClustersJoinAndLeave(t *testing.T) {
	eu := v1alpha1.Target{Name: "eu", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}}
	cluster := func(name, region string) *manifold.Cluster {
		return &manifold.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": region}}}
	}
	runs := func(targets ...string) []v1alpha1.Variant {
		out := v1alpha1.Variant{Name: v1alpha1.VariantPrimary}
		for _, target := range targets {
			name, in, _ := strings.Cut(target, "@")
			out.Clusters = append(out.Clusters, v1alpha1.VariantCluster{Target: name, Cluster: in})
		}
		return []v1alpha1.Variant{out}
	}
	for name, test := range map[string]struct {
		targets  []v1alpha1.Target
		runs     []v1alpha1.Variant
		only     []string
		refused  bool
		differs  bool
		contains []string
	}{
		"nothing where all is as it was":  {targets: []v1alpha1.Target{eu}, runs: runs("eu@a", "eu@b"), contains: []string{"Target eu: nothing changes\n"}},
		"nothing where placement decides": {runs: runs("default@mars"), contains: []string{"Target eu: nothing changes\n"}},
		"one that joins":                  {targets: []v1alpha1.Target{eu}, runs: runs("eu@a"), differs: true, contains: []string{"Target eu: nothing changes\n", "\n+ cluster \"b\" joins target eu\n"}},
		"one that leaves":                 {targets: []v1alpha1.Target{eu}, runs: runs("eu@a", "eu@b", "eu@us"), differs: true, contains: []string{"\n- cluster \"us\" leaves target eu\n"}},
		"one whose target is gone": {
			targets: []v1alpha1.Target{eu}, runs: runs("eu@a", "eu@b", "old@us"), differs: true, contains: []string{"Target old: it is no target any more\n", "\n- cluster \"us\" leaves target old\n"},
		},
		"not of targets that nobody asks about": {targets: []v1alpha1.Target{eu}, runs: runs("eu@a", "eu@b", "old@us"), only: []string{"eu"}, contains: []string{"Target eu: nothing changes\n"}},
		"a target that is nowhere": {
			targets: []v1alpha1.Target{{Name: "eu", Cluster: "mars"}}, runs: runs("eu@a"), contains: []string{`Clusters that join or leave: unknown: the next release cannot begin: target "eu": there is no cluster "mars"`},
		},
		"to whom it may not tell": {targets: []v1alpha1.Target{eu}, refused: true, contains: []string{"Clusters that join or leave: unknown: not for you"}},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewSimpleClientset(cluster("a", "eu"), cluster("b", "eu"), cluster("us", "us"))
			if test.refused {
				client.PrependReactor("list", "clusters", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("not for you") })
			}
			o := &PlanOptions{subject: subject{client: client}, Targets: test.only}
			app := &v1alpha1.Application{Spec: v1alpha1.ApplicationSpec{Targets: test.targets}, Status: v1alpha1.ApplicationStatus{Variants: test.runs}}
			found := &plan{Application: "web", Revision: "web-v8", Targets: []planTarget{{Name: "eu"}}}
			o.clusters(t.Context(), app, revision("web", 8), found)
			var out strings.Builder
			if err := found.print(&out); err != nil {
				t.Fatal(err)
			}
			for _, want := range test.contains {
				if !strings.Contains(out.String(), want) {
					t.Errorf("it says %s, want %s", out.String(), want)
				}
			}
			if found.differs() != test.differs {
				t.Errorf("it differs: %t, want %t", found.differs(), test.differs)
			}
		})
	}
}
