package mirrors

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/persistentvolume/resize"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestWhetherAClaimCanGrowIsForItsClusterToSay(t *testing.T) {
	own := &api.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}}
	held := own.DeepCopy()
	held.Annotations = map[string]string{v1alpha1.AnnotationStatus: `{"east":{"volume":"pv-1"}}`}
	mirror := own.DeepCopy()
	mirror.Annotations = map[string]string{v1alpha1.AnnotationCluster: "east"}
	for name, test := range map[string]struct {
		plugin     string
		claim      *api.PersistentVolumeClaim
		wantExempt bool
	}{
		"that of a mirror":                   {resize.PluginName, mirror, true},
		"that of a user which a cluster has": {resize.PluginName, held, true},
		"not that of a user which none has":  {resize.PluginName, own, false},
		"not what other plugins":             {"ResourceQuota", mirror, false},
	} {
		t.Run(name, func(t *testing.T) {
			attributes := admission.NewAttributesRecord(test.claim.DeepCopy(), test.claim, schema.GroupVersionKind{}, "shop", "data",
				schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, "", admission.Update, nil, false, &user.DefaultInfo{Name: "jane"})
			err := ResizeBelow(refusing{}, test.plugin).(admission.ValidationInterface).Validate(t.Context(), attributes, nil)
			if exempt := err == nil; exempt != test.wantExempt {
				t.Errorf("exempt %t, want %t", exempt, test.wantExempt)
			}
		})
	}
}
