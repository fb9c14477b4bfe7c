package projection

//lint:file-ignore SA1019 Users write Endpoints all the same.

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestEndpointsThatSomebodyWroteGoAlongWithTheirService(t *testing.T) {
	services := kindOf(t, &corev1.Service{})
	labelled := func(in Object, pairs ...string) Object {
		set := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			set[pairs[i]] = pairs[i+1]
		}
		in.SetLabels(set)
		return in
	}
	slice := func(pairs ...string) Object {
		return labelled(&discoveryv1.EndpointSlice{ObjectMeta: named("shop", "web-1")}, pairs...)
	}
	endpoints := func(name string, pairs ...string) Object {
		return labelled(&corev1.Endpoints{ObjectMeta: named("shop", name)}, pairs...)
	}
	ofTheAPI := func(in Object) Object {
		in.SetNamespace("default")
		return in
	}
	tests := map[string]struct {
		in      Object
		mirror  bool // made of pods, here as in every cluster
		refused bool
		follows []Reference
	}{
		"endpoints of the Service of their name": {in: endpoints("web"), follows: []Reference{ref(services, "web", true)}},
		"endpoints that the controller keeps":    {in: endpoints("web", labelEndpointsBy, endpointController), mirror: true, follows: []Reference{ref(services, "web", true)}},
		"a slice of the Service that it names":   {in: slice(discoveryv1.LabelServiceName, "web"), follows: []Reference{ref(services, "web", true)}},
		"a slice of an operator": {
			in:      slice(discoveryv1.LabelServiceName, "web", discoveryv1.LabelManagedBy, "mesh.example.com"),
			follows: []Reference{ref(services, "web", true)},
		},
		"a slice that names none goes nowhere":     {in: slice()},
		"a slice of pods":                          {in: slice(discoveryv1.LabelManagedBy, endpointSliceController), mirror: true},
		"a slice of endpoints that somebody wrote": {in: slice(discoveryv1.LabelManagedBy, endpointSliceMirrorController), mirror: true},
		"the slice of the API servers": {
			in: ofTheAPI(slice(discoveryv1.LabelServiceName, "kubernetes")), refused: true,
			follows: []Reference{{Resource: services.Resource, Namespace: "default", Name: "kubernetes", Optional: true}},
		},
		"the endpoints of the API servers": {
			in: ofTheAPI(endpoints("kubernetes")), refused: true,
			follows: []Reference{{Resource: services.Resource, Namespace: "default", Name: "kubernetes", Optional: true}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kind, _ := KindOf(test.in)
			if got := kind.Mirror(test.in); got != test.mirror {
				t.Errorf("mirror: %t, want %t", got, test.mirror)
			}
			if ok, _ := kind.Projectable(test.in); ok == test.refused {
				t.Errorf("projectable: %t, want %t", ok, !test.refused)
			}
			if got := kind.Follows(test.in); !reflect.DeepEqual(got, test.follows) {
				t.Errorf("follows %+v, want %+v", got, test.follows)
			}
		})
	}
}

func TestWhatAClusterMakesForAnObjectOfOursIsNotWatched(t *testing.T) {
	made := map[string]map[string]string{
		"what has no such label": nil,
		"a slice of an operator": {discoveryv1.LabelManagedBy: "mesh.example.com"},
		"a slice of pods":        {discoveryv1.LabelManagedBy: endpointSliceController},
		"a slice of Endpoints":   {discoveryv1.LabelManagedBy: endpointSliceMirrorController},
		"Endpoints of pods":      {labelEndpointsBy: endpointController},
	}
	hidden := map[string][]string{"Endpoints": {"Endpoints of pods"}, "EndpointSlice": {"a slice of pods", "a slice of Endpoints"}}
	for _, kind := range Kinds() {
		selector, err := labels.Parse(kind.NotMadeThere)
		if err != nil {
			t.Fatal(err)
		}
		for name, has := range made {
			// The labels are anybody's on other kinds: what has them would be made and never be seen again.
			want := !slices.Contains(hidden[kind.GVK.Kind], name)
			if got := selector.Matches(labels.Set(has)); got != want {
				t.Errorf("a %s with the labels of %s is watched: %t, want %t", kind.GVK.Kind, name, got, want)
			}
		}
	}
}

func TestASliceIsMadeAnewForAnotherTypeOfAddresses(t *testing.T) {
	kind := kindOf(t, &discoveryv1.EndpointSlice{})
	four, six := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}, &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv6}
	if got := kind.replace(four, six); got != "addressType" {
		t.Errorf("replaced for %q, want its addressType", got)
	}
	if got := kind.replace(four, four); got != "" {
		t.Errorf("replaced for %q, want it kept", got)
	}
}
