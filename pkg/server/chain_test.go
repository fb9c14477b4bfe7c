package server

import (
	"testing"
	_ "unsafe" // for linkname

	"k8s.io/apimachinery/pkg/runtime/schema"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app" // has the list
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/bootstrap"
)

// stockPriorities is the list of kube-apiserver, which is private there.
//
//go:linkname stockPriorities k8s.io/kubernetes/cmd/kube-apiserver/app.apiVersionPriorities
var stockPriorities map[schema.GroupVersion]controlplaneapiserver.APIServicePriority

// A version without a priority is served and shown by no discovery.
func TestEveryVersionThatCanBeServedHasAPriority(t *testing.T) {
	got := groupPriorities()
	for version := range controlplane.DefaultAPIResourceConfigSource().GroupVersionConfigs {
		if _, ok := got[version]; !ok {
			t.Errorf("%s has none", version)
		}
	}
	for _, own := range []schema.GroupVersion{manifold.SchemeGroupVersion, delivery.SchemeGroupVersion} {
		if _, ok := got[own]; !ok {
			t.Errorf("%s has none", own)
		}
	}
	// A server whose user has put an API of metrics in our place, which does not answer now, must get ready all the same.
	if _, ok := got[metricsv1beta1.SchemeGroupVersion]; ok {
		t.Errorf("%s has one: the server waits for it", metricsv1beta1.SchemeGroupVersion)
	}
}

func TestPrioritiesAreThoseOfTheStockServer(t *testing.T) {
	if len(stockPriorities) == 0 {
		t.Fatal("the list of the stock server is not where it was")
	}
	for version, priority := range groupPriorities() {
		if manifold.IsOwnGroup(version.Group) {
			continue
		}
		if want := stockPriorities[version]; priority != want {
			t.Errorf("%s has %+v, want %+v", version, priority, want)
		}
	}
}

func TestOwnKindsComeAfterTheStockOnesThatUsersMean(t *testing.T) {
	got := groupPriorities()
	own := max(got[manifold.SchemeGroupVersion].Group, got[delivery.SchemeGroupVersion].Group)
	for version, priority := range stockPriorities {
		if priority.Group <= own {
			t.Errorf("%s comes after kinds of our own", version)
		}
		if priority.Group <= bootstrap.MetricsGroupPriority {
			t.Errorf("%s comes after metrics, so that \"pods\" may not mean pods", version)
		}
	}
}
