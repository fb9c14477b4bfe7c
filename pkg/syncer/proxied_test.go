package syncer

import (
	"context"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// serviceBelow is the projection of a Service, with the selector that the cluster has it with.
func serviceBelow(above *corev1.Service, selector map[string]string) *corev1.Service {
	s := above.DeepCopy()
	s.UID = above.UID + "-below"
	s.Labels = maps.Clone(above.Labels)
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	s.Labels[v1alpha1.LabelLogicalCluster] = logicalCluster
	s.Annotations = map[string]string{
		v1alpha1.AnnotationNamespace: above.Namespace, v1alpha1.AnnotationName: above.Name, v1alpha1.AnnotationUID: string(above.UID),
	}
	s.Spec.Selector = selector
	return s
}

// slice has the cluster's own controller make a slice, as the watch shows it.
func (s *testSyncer) slice(t *testing.T, of *discoveryv1.EndpointSlice) {
	t.Helper()
	if err := s.below.slices.Informer.GetStore().Add(of); err != nil {
		t.Fatal(err)
	}
	s.below.inside.Note(of, true)
}

// What the nodes of its own cluster do not know takes the place of nothing either: the pods are ready, and the logical cluster knows them.
func TestAShareIsHeldUntilTheSlicesOfItsClusterNameTheReplacement(t *testing.T) {
	above := deployment("web", `{"west":{"replicas":2}}`)
	web := service("web", map[string]string{"app": "web"})
	all := []types.UID{"old-1", "old-2", "new-1", "new-2"}
	for name, test := range map[string]struct {
		// inside is the Service as west has it, and made are the slices there.
		inside *corev1.Service
		made   []*discoveryv1.EndpointSlice
		want   int32 // that east keeps
	}{
		"they name the new pods":         {inside: serviceBelow(web, web.Spec.Selector), made: []*discoveryv1.EndpointSlice{leading("web", all[2:], nil)}},
		"they name one of them":          {inside: serviceBelow(web, web.Spec.Selector), made: []*discoveryv1.EndpointSlice{leading("web", all[2:3], nil)}, want: 1},
		"they name them as not ready":    {inside: serviceBelow(web, web.Spec.Selector), made: []*discoveryv1.EndpointSlice{leading("web", nil, all[2:])}, want: 2},
		"only another Service has some":  {inside: serviceBelow(web, web.Spec.Selector), made: []*discoveryv1.EndpointSlice{leading("api", nil, nil)}, want: 2},
		"the cluster has made none yet":  {inside: serviceBelow(web, web.Spec.Selector), want: 2},
		"the cluster has no Service":     {made: []*discoveryv1.EndpointSlice{leading("api", nil, nil)}},
		"the Service there selects none": {inside: serviceBelow(web, map[string]string{"app": "other"}), made: []*discoveryv1.EndpointSlice{leading("web", nil, nil)}},
	} {
		t.Run(name, func(t *testing.T) {
			factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
			u := newUpstreamOf(t, factory, above, web)
			if err := factory.Discovery().V1().EndpointSlices().Informer().GetStore().Add(leading("web", all, nil)); err != nil {
				t.Fatal(err)
			}
			east := attach(t, u, "east", readyPods(projected(above, 2, 2), all[:2]...)...)
			has := readyPods(projected(above, 2, 2), all[2:]...)
			if test.inside != nil {
				has = append(has, test.inside)
			}
			west := attach(t, u, "west", has...)
			for _, slice := range test.made {
				west.slice(t, slice)
			}
			if step := east.next(above); step.Held != (test.want > 0) || step.Share.Replicas != test.want {
				t.Errorf("%+v; want %d replicas held", step, test.want)
			}
			if test.want == 0 {
				return
			}
			west.below.inside.Changed(cache.ObjectName{Namespace: "shop", Name: "web"})
			if got := east.enqueued(); !slices.Equal(got, []string{"deployments shop/web"}) {
				t.Errorf("looks at %v when the slices change, want the Deployment", got)
			}
		})
	}
}

// variant is a Deployment of an application that is one of its variants.
func variant(name, of string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Labels = map[string]string{delivery.LabelApplication: name}
		d.Annotations[delivery.AnnotationVariant] = of
	}
}

// ofApplication is a Service of an application, for one of its variants.
func ofApplication(s *corev1.Service, name, of string) *corev1.Service {
	s.Labels = map[string]string{delivery.LabelApplication: name}
	s.Annotations = map[string]string{delivery.AnnotationVariant: of}
	return s
}

func TestAVariantIsReportedAsUnproxiedUntilTheSlicesOfTheClusterNameItsPods(t *testing.T) {
	selector := map[string]string{"app": "web"}
	canary := ofApplication(service("web-canary", selector), "web", "canary")
	front := ofApplication(service("web", selector), "web", delivery.VariantPrimary)
	pods := []types.UID{"new-1", "new-2"}
	for name, test := range map[string]struct {
		app, variant string
		above        []projection.Object
		inside       []projection.Object
		made         []*discoveryv1.EndpointSlice
		want         int32
	}{
		"none is made yet":                     {above: []projection.Object{canary}, inside: []projection.Object{serviceBelow(canary, selector)}, want: 2},
		"they name one":                        {above: []projection.Object{canary}, inside: []projection.Object{serviceBelow(canary, selector)}, made: []*discoveryv1.EndpointSlice{leading("web-canary", pods[:1], pods[1:])}, want: 1},
		"they name all":                        {above: []projection.Object{canary}, inside: []projection.Object{serviceBelow(canary, selector)}, made: []*discoveryv1.EndpointSlice{leading("web-canary", pods, nil)}},
		"the Service is about to be there":     {above: []projection.Object{canary}, want: 2},
		"the one in front is narrowed there":   {above: []projection.Object{canary, front}, inside: []projection.Object{serviceBelow(canary, selector), serviceBelow(front, map[string]string{"app": "web", "variant": "primary"})}, made: []*discoveryv1.EndpointSlice{leading("web-canary", pods, nil)}},
		"the one in front leads to them, too":  {above: []projection.Object{canary, front}, inside: []projection.Object{serviceBelow(canary, selector), serviceBelow(front, selector)}, made: []*discoveryv1.EndpointSlice{leading("web-canary", pods, nil)}, want: 2},
		"the application shares out nothing":   {above: []projection.Object{front}, inside: []projection.Object{serviceBelow(front, selector)}},
		"the Service is another application's": {app: "other", above: []projection.Object{canary}, inside: []projection.Object{serviceBelow(canary, selector)}},
		"it is no variant of anything":         {variant: "-", above: []projection.Object{canary}, inside: []projection.Object{serviceBelow(canary, selector)}},
	} {
		t.Run(name, func(t *testing.T) {
			app, of := "web", "canary"
			if test.app != "" {
				app = test.app
			}
			if test.variant == "-" {
				of = ""
			}
			above := deployment("web", `{"east":{"replicas":2}}`, variant(app, of))
			u := newUpstream(t, append(test.above, above)...)
			live := projected(above, 2, 2)
			east := attach(t, u, "east", append(readyPods(live, pods...), test.inside...)...)
			for _, slice := range test.made {
				east.slice(t, slice)
			}
			east.changes = nil
			key := identity.Key{Resource: deploymentResource, Namespace: "shop", Name: "web"}
			report, known := east.reports.Report(key, above)
			if !known || report.Live == nil || report.Unproxied != test.want {
				t.Fatalf("%+v (known: %t); want %d unproxied", report, known, test.want)
			}
			for _, of := range test.above {
				east.below.inside.Changed(cache.MetaObjectToName(of))
			}
			if told := slices.Contains(east.changes, change{key, true}); told != (test.want > 0) {
				t.Errorf("told are %v when the slices change", east.changes)
			}
		})
	}
}

// After a restart nobody knows since when slices name the pods: what was told of them before counts, so that nothing is written.
func TestWhatWasToldOfAVariantCountsAfterARestart(t *testing.T) {
	selector := map[string]string{"app": "web"}
	canary := ofApplication(service("web-canary", selector), "web", "canary")
	for name, test := range map[string]struct {
		told string
		want int32
	}{
		"nothing was told":               {want: 2},
		"requests got to both":           {told: `{"east":{"replicas":2,"ready":2}}`},
		"requests got to one of them":    {told: `{"east":{"replicas":2,"ready":2,"unproxied":1}}`, want: 1},
		"requests got to more than now":  {told: `{"east":{"replicas":3,"ready":3}}`},
		"it was told of another cluster": {told: `{"west":{"replicas":2,"ready":2}}`, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			above := deployment("web", `{"east":{"replicas":2}}`, variant("web", "canary"))
			if test.told != "" {
				above.Annotations[v1alpha1.AnnotationStatus] = test.told
			}
			u := newUpstream(t, canary, above)
			east := attach(t, u, "east", append(readyPods(projected(above, 2, 2), "new-1", "new-2"), serviceBelow(canary, selector))...)
			ctx, cancel := context.WithCancel(t.Context())
			east.below.inside.Start(ctx)
			defer east.below.inside.Stop()
			defer cancel()
			report, known := east.reports.Report(identity.Key{Resource: deploymentResource, Namespace: "shop", Name: "web"}, above)
			if !known || report.Unproxied != test.want {
				t.Errorf("%+v (known: %t); want %d unproxied", report, known, test.want)
			}
		})
	}
}
