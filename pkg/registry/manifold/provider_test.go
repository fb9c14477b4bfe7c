package manifold

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	serverstorage "k8s.io/apiserver/pkg/server/storage"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestProviderServesWhatIsEnabled(t *testing.T) {
	provider, storage := api.Provider(t)
	noPolicies := api.Everything(t)
	noPolicies.DisableResources(
		v1alpha1.SchemeGroupVersion.WithResource("placementpolicies"),
		v1alpha1.SchemeGroupVersion.WithResource("clusterplacementpolicies"))

	for name, test := range map[string]struct {
		enabled serverstorage.APIResourceConfigSource
		want    []string
	}{
		"the version serves all of its resources": {
			enabled: api.Everything(t),
			want:    []string{"clusterplacementpolicies", "clusterplacementpolicies/status", "clusters", "clusters/status", "placementpolicies", "placementpolicies/status"},
		},
		"resources can be disabled one by one":         {enabled: noPolicies, want: []string{"clusters", "clusters/status"}},
		"a version that is not enabled serves nothing": {enabled: serverstorage.NewResourceConfig()},
	} {
		t.Run(name, func(t *testing.T) {
			group, err := provider.NewRESTStorage(test.enabled, storage)
			if err != nil {
				t.Fatal(err)
			}
			stores, served := group.VersionedResourcesStorageMap["v1alpha1"]
			if served != (len(test.want) > 0) {
				t.Errorf("v1alpha1 has an entry: %t, want %t, since an entry without resources would be installed", served, !served)
			}
			if got := slices.Sorted(maps.Keys(stores)); !slices.Equal(got, test.want) {
				t.Errorf("serves %q, want %q", got, test.want)
			}
			for _, store := range stores {
				store.Destroy()
			}
		})
	}
}

func TestProviderOffersNoProtobuf(t *testing.T) {
	provider, storage := api.Provider(t)
	group, err := provider.NewRESTStorage(api.Everything(t), storage)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, info := range group.NegotiatedSerializer.SupportedMediaTypes() {
		got = append(got, info.MediaType)
	}
	if slices.Contains(got, runtime.ContentTypeProtobuf) || !slices.Contains(got, runtime.ContentTypeJSON) {
		t.Errorf("media types %q, want JSON and no protobuf", got)
	}
	for _, store := range group.VersionedResourcesStorageMap["v1alpha1"] {
		store.Destroy()
	}
}
