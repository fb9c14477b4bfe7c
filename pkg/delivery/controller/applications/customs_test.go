package applications

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/delivery/state"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// gizmo is an object of a custom kind with a decision, and what is reported of it.
func gizmo(name, decision, reported string) observe.Present {
	return observe.Present{Key: wanted.Key{Group: "example.com", Kind: "Gizmo", Name: name}, Custom: true, Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: name, Generation: 2, Annotations: map[string]string{manifold.AnnotationPlacement: decision, manifold.AnnotationStatus: reported},
	}}}
}

func TestWhereObjectsOfCustomKindsAreNotWell(t *testing.T) {
	const east = `{"east":{"replicas":1}}`
	type ailments = map[string]state.Ailment
	for name, test := range map[string]struct {
		present []observe.Present
		want    ailments
	}{
		"what stays above is nowhere":         {[]observe.Present{gizmo("one", "", "")}, ailments{}},
		"what a cluster has as it is":         {[]observe.Present{gizmo("one", east, `{"east":{"generation":2,"state":"Ready"}}`)}, ailments{}},
		"what a cluster refuses":              {[]observe.Present{gizmo("one", east, `{"east":{"problem":"no right"}}`)}, ailments{"east": {Health: v1alpha1.Degraded, Message: "Gizmo/one: no right"}}},
		"what a cluster has as it was":        {[]observe.Present{gizmo("one", east, `{"east":{"generation":1}}`)}, ailments{"east": {Health: v1alpha1.Progressing, Message: "Gizmo/one: the cluster has not taken it up yet"}}},
		"what says that it is not ready":      {[]observe.Present{gizmo("one", east, `{"east":{"generation":2,"unready":true,"state":"Ready=False (NoDisk)"}}`)}, ailments{"east": {Health: v1alpha1.Progressing, Message: "Gizmo/one: Ready=False (NoDisk)"}}},
		"of several the worst is told":        {[]observe.Present{gizmo("one", east, `{"east":{"generation":1}}`), gizmo("two", east, `{"east":{"problem":"no right"}}`)}, ailments{"east": {Health: v1alpha1.Degraded, Message: "Gizmo/two: no right"}}},
		"of several that are alike the first": {[]observe.Present{gizmo("two", east, `{}`), gizmo("one", east, `{}`)}, ailments{"east": {Health: v1alpha1.Progressing, Message: "Gizmo/one: the cluster has not taken it up yet"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ailing(test.present); !maps.Equal(got, test.want) {
				t.Errorf("ailing are %v, want %v", got, test.want)
			}
		})
	}
}
