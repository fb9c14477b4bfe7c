package policies

import (
	"fmt"
	"math/rand/v2"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/projection"
)

func TestAPolicyConcernsWhomItSelects(t *testing.T) {
	deployments, has := projection.ForResource(appsv1.SchemeGroupVersion.WithResource("deployments"))
	if !has {
		t.Fatal("Deployments are no kind")
	}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}}}
	labelled := func(app string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
	for name, test := range map[string]struct {
		namespace        string
		spec             v1alpha1.PlacementPolicySpec
		concerns, others bool
	}{
		"one for everything":       {concerns: true},
		"one for its labels":       {spec: v1alpha1.PlacementPolicySpec{Workloads: &v1alpha1.WorkloadSelector{LabelSelector: labelled("web")}}, concerns: true},
		"one for other labels":     {spec: v1alpha1.PlacementPolicySpec{Workloads: &v1alpha1.WorkloadSelector{LabelSelector: labelled("db")}}},
		"one for its kind":         {spec: v1alpha1.PlacementPolicySpec{Workloads: &v1alpha1.WorkloadSelector{Kinds: []string{"Deployment"}}}, concerns: true},
		"one for other kinds":      {spec: v1alpha1.PlacementPolicySpec{Workloads: &v1alpha1.WorkloadSelector{Kinds: []string{"Job"}}}},
		"one that cannot be read":  {spec: v1alpha1.PlacementPolicySpec{Workloads: &v1alpha1.WorkloadSelector{LabelSelector: labelled("no value!")}}, concerns: true},
		"one of another namespace": {namespace: "other"},
		"one that keeps others from its own": {
			spec: v1alpha1.PlacementPolicySpec{
				Workloads: &v1alpha1.WorkloadSelector{LabelSelector: labelled("db")}, AntiAffinity: []v1alpha1.WorkloadAffinity{{}},
			},
			others: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "rule"}, Spec: test.spec}
			if test.namespace != "" {
				p.Namespace = test.namespace
			}
			concerns, others := Concerned(p)
			if got := concerns(deployments, web); got != test.concerns || others != test.others {
				t.Errorf("it concerns the workload: %t, others: %t; want %t and %t", got, others, test.concerns, test.others)
			}
		})
	}
}

func TestAPolicyIsReadAnewWhenItHasChanged(t *testing.T) {
	reading, times := newReading(nil, nil), 0
	read := func(p *v1alpha1.PlacementPolicy) *rules.Policy {
		return reading.of(cache.MetaObjectToName(p), p, func() *rules.Policy {
			times++
			return rules.PolicyOf(p)
		})
	}
	before := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "rule"}}
	after := before.DeepCopy()
	if first := read(before); read(before) != first || times != 1 {
		t.Errorf("it was read %d times, want once", times)
	}
	if read(after) == read(before) || times != 3 {
		t.Errorf("it was read %d times, want anew for each change", times)
	}
}

// selectors are those of policies that are made at random: the index may leave out none that selects a workload, or that cannot be read.
var selectors = []*v1alpha1.WorkloadSelector{
	nil,
	{},
	{Kinds: []string{"Deployment"}},
	{Kinds: []string{"Job"}, LabelSelector: build.Labelled("app", "web")},
	{LabelSelector: &metav1.LabelSelector{}},
	{LabelSelector: build.Labelled("app", "web")},
	{LabelSelector: build.Labelled("app", "db")},
	{LabelSelector: build.Labelled("app", "")},
	{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "tier": "front"}}},
	{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}},
	{LabelSelector: &metav1.LabelSelector{
		MatchLabels:      map[string]string{"app": "db"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Sideways"}},
	}},
	{LabelSelector: build.Labelled("app", "no value!")},
}

func TestTheIndexLeavesOutNoPolicyThatCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	for range 2000 {
		var all []*rules.Policy
		indexers := cache.Indexers{bySelected: indexSelected, bySaying: indexSaying}
		namespaced, wide := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers), cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
		for i := range r.IntN(6) {
			p := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: pick("shop", "bank"), Name: fmt.Sprintf("p%d", i)}}
			p.Spec.Priority, p.Spec.Workloads = r.Int32N(3), selectors[r.IntN(len(selectors))]
			_ = namespaced.Add(p)
			all = append(all, rules.PolicyOf(p))
		}
		for i := range r.IntN(4) {
			p := &v1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("w%d", i)}}
			p.Spec.Priority, p.Spec.Workloads = r.Int32N(3), selectors[r.IntN(len(selectors))]
			if team := pick("", "a", "b", "no value!"); team != "" {
				p.Spec.NamespaceSelector = build.Labelled("team", team)
			}
			_ = wide.Add(p)
			all = append(all, rules.WidePolicyOf(p))
		}
		w := build.Deployment(1).Workload
		w.Namespace, w.Labels, w.NamespaceLabels = "shop", map[string]string{"app": pick("web", "db", "", "x"), "tier": pick("front", "back")}, map[string]string{"team": pick("a", "b")}
		want, wantErr := rules.Select(w, all)
		got, err := rules.Select(w, newReading(namespaced, wide).ForWorkload(w.Namespace, w.Labels))
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || (got == nil) != (want == nil) || got != nil && got.String() != want.String() {
			t.Fatalf("%v is under %v (%v), want %v (%v)", w.Labels, got, err, want, wantErr)
		}
	}
}

func TestAWorkloadReadsThePoliciesThatMaySelectIt(t *testing.T) {
	indexers := cache.Indexers{bySelected: indexSelected}
	namespaced, wide := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers), cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	for i := range 1000 {
		name := fmt.Sprintf("app-%d", i)
		_ = namespaced.Add(&v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: v1alpha1.PlacementPolicySpec{Workloads: &v1alpha1.WorkloadSelector{LabelSelector: build.Labelled("app", name)}}})
	}
	_ = wide.Add(&v1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	reading := newReading(namespaced, wide)
	for want, has := range map[int]map[string]string{1: nil, 2: {"app": "app-7", "tier": "front"}} {
		if got := reading.ForWorkload("shop", has); len(got) != want {
			t.Errorf("with labels %v, %d policies are read, want %d", has, len(got), want)
		}
	}
}

func TestWhatNoPolicySaysIsNotLookedFor(t *testing.T) {
	overriding := v1alpha1.PlacementPolicySpec{Overrides: []v1alpha1.Override{{}}}
	moving := v1alpha1.PlacementPolicySpec{Move: &v1alpha1.Move{}}
	of := func(namespace, name string, spec v1alpha1.PlacementPolicySpec) *v1alpha1.PlacementPolicy {
		return &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
	}
	wideOf := func(name string, spec v1alpha1.PlacementPolicySpec) *v1alpha1.ClusterPlacementPolicy {
		return &v1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ClusterPlacementPolicySpec{PlacementPolicySpec: spec}}
	}
	for name, test := range map[string]struct {
		namespaced       []*v1alpha1.PlacementPolicy
		wide             []*v1alpha1.ClusterPlacementPolicy
		overrides, moves bool
	}{
		"none says anything":               {namespaced: []*v1alpha1.PlacementPolicy{of("shop", "a", v1alpha1.PlacementPolicySpec{})}},
		"one of the namespace overrides":   {namespaced: []*v1alpha1.PlacementPolicy{of("shop", "a", overriding)}, overrides: true},
		"one of the namespace moves":       {namespaced: []*v1alpha1.PlacementPolicy{of("shop", "a", moving)}, moves: true},
		"one of another namespace does":    {namespaced: []*v1alpha1.PlacementPolicy{of("bank", "a", overriding), of("bank", "b", moving)}},
		"one for several namespaces":       {wide: []*v1alpha1.ClusterPlacementPolicy{wideOf("a", overriding)}, overrides: true},
		"two say one thing each":           {namespaced: []*v1alpha1.PlacementPolicy{of("shop", "a", moving)}, wide: []*v1alpha1.ClusterPlacementPolicy{wideOf("a", overriding)}, overrides: true, moves: true},
		"one that no longer says anything": {namespaced: []*v1alpha1.PlacementPolicy{of("shop", "a", moving), of("shop", "a", v1alpha1.PlacementPolicySpec{})}},
	} {
		t.Run(name, func(t *testing.T) {
			indexers := cache.Indexers{bySaying: indexSaying}
			namespaced, wide := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers), cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
			for _, p := range test.namespaced {
				_ = namespaced.Add(p)
			}
			for _, p := range test.wide {
				_ = wide.Add(p)
			}
			reading := newReading(namespaced, wide)
			if o, m := reading.AnySays(Overrides, "shop"), reading.AnySays(Moves, "shop"); o != test.overrides || m != test.moves {
				t.Errorf("overrides: %t, moves: %t; want %t and %t", o, m, test.overrides, test.moves)
			}
		})
	}
}
