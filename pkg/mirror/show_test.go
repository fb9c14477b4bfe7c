package mirror

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestOwnersOfAMirror(t *testing.T) {
	above := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: ptr.To(true)}
	loose := metav1.OwnerReference{APIVersion: "v1", Kind: "ReplicationController", Name: "other", UID: "other"}
	pod := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "first", UID: "first", Controller: ptr.To(true)}
	for name, test := range map[string]struct {
		have   []metav1.OwnerReference
		told   []metav1.OwnerReference
		ending bool
		want   []metav1.OwnerReference
	}{
		"its controller":                            {nil, []metav1.OwnerReference{above}, false, []metav1.OwnerReference{above}},
		"with what a user has added":                {[]metav1.OwnerReference{above, loose}, []metav1.OwnerReference{above}, false, []metav1.OwnerReference{loose, above}},
		"without one that has let go of it":         {[]metav1.OwnerReference{above, loose}, nil, false, []metav1.OwnerReference{loose}},
		"a pod controls no pods below":              {[]metav1.OwnerReference{pod}, nil, false, []metav1.OwnerReference{pod}},
		"one that goes keeps what it has":           {[]metav1.OwnerReference{above}, []metav1.OwnerReference{above}, true, []metav1.OwnerReference{above}},
		"and what was taken off it is not put back": {[]metav1.OwnerReference{loose}, []metav1.OwnerReference{above}, true, []metav1.OwnerReference{loose}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OwnersOf(test.have, test.told, test.ending); !equality.Semantic.DeepEqual(got, test.want) {
				t.Errorf("owners %+v, want %+v", got, test.want)
			}
		})
	}
}
