package admission

import (
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/warning"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestDeliveryAloneSaysWhatClustersHoldOtherwise(t *testing.T) {
	services := schema.GroupVersionResource{Version: "v1", Resource: "services"}
	said := func(routes string) *metav1.PartialObjectMetadata {
		return annotated(map[string]string{delivery.AnnotationRoutes: routes, "note": "kept"})
	}
	without := annotated(map[string]string{"note": "kept"})
	for name, test := range map[string]struct {
		who      string
		now, old *metav1.PartialObjectMetadata
		want     *metav1.PartialObjectMetadata
		warns    bool
	}{
		"somebody says it of an object that is made": {"ann", said("mine"), nil, without, true},
		"of one that is there":                       {"ann", said("mine"), without, without, true},
		"otherwise than delivery does":               {"ann", said("mine"), said("theirs"), said("theirs"), true},
		"nor does a ServiceAccount":                  {"system:serviceaccount:shop:deployer", said("mine"), without, without, true},
		"as it is said already":                      {"ann", said("theirs"), said("theirs"), said("theirs"), false},
		"no more, where the application is gone":     {"ann", without, said("theirs"), without, false},
		"delivery says it":                           {v1alpha1.DeliveryUser, said("theirs"), without, said("theirs"), false},
		"who deploys revisions says it":              {v1alpha1.AppDeploymentsUser, said("theirs"), without, said("theirs"), false},
		"delivery says something else":               {v1alpha1.DeliveryUser, said("other"), said("theirs"), said("other"), false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, resource := range []schema.GroupVersionResource{services, gizmos} {
				now, warnings := test.now.DeepCopy(), &recorder{}
				refused := (&managed{}).Validate(t.Context(), attributes(resource, "", test.who, now, test.old), nil)
				if (refused != nil) != test.warns {
					t.Errorf("%s from a webhook: error %v", resource.Resource, refused)
				}
				if err := (&managed{}).Admit(warning.WithWarningRecorder(t.Context(), warnings), attributes(resource, "", test.who, now, test.old), nil); err != nil {
					t.Fatal(err)
				}
				if !maps.Equal(now.Annotations, test.want.Annotations) {
					t.Errorf("%s: annotations %v, want %v", resource.Resource, now.Annotations, test.want.Annotations)
				}
				if got := strings.Join(warnings.texts, "\n"); strings.Contains(got, delivery.AnnotationRoutes) != test.warns {
					t.Errorf("%s: warnings %q", resource.Resource, got)
				}
			}
		})
	}
}
