package pods

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
)

// secretsAbove are the Secrets of the logical cluster by name, with their UIDs.
type secretsAbove map[string]string

func (s secretsAbove) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	uid, ok := s[name]
	if !ok {
		return nil, apierrors.NewNotFound(api.Resource("secrets"), name)
	}
	return &api.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}, nil
}

func TestContainersForDebuggingNameNothingOfOthers(t *testing.T) {
	there := func(name, uid string) *corev1.Secret {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		if uid != "" {
			secret.Labels = map[string]string{v1alpha1.LabelLogicalCluster: "lc"}
			secret.Annotations = map[string]string{v1alpha1.AnnotationUID: uid}
		}
		return secret
	}
	client := fake.NewClientset(there("ours", "u1"), there("foreign", ""), there("earlier", "u0"), there("only-there", "u9"))
	client.PrependReactor("get", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if name := action.(clienttesting.GetAction).GetName(); name == "unreadable" {
			return true, nil, apierrors.NewForbidden(api.Resource("secrets"), name, nil)
		}
		return false, nil, nil
	})
	names := debugNames{"secrets": secretsAbove{"ours": "u1", "foreign": "u2", "earlier": "u3", "unreadable": "u4"}, "configmaps": secretsAbove{}}
	from := func(secret string, optional bool) []api.EnvFromSource {
		return []api.EnvFromSource{{SecretRef: &api.SecretEnvSource{LocalObjectReference: api.LocalObjectReference{Name: secret}, Optional: &optional}}}
	}
	pod := mirror("east")
	pod.Namespace = "shop"
	pod.Spec.Containers = []api.Container{{Name: "app", EnvFrom: from("its-own", false)}}
	for name, test := range map[string]struct {
		secret   string
		optional bool
		want     bool
	}{
		"what the pod names":                        {"its-own", false, true},
		"what the logical cluster has put there":    {"ours", false, true},
		"somebody else's":                           {"foreign", false, false},
		"somebody else's, though it may be missing": {"foreign", true, false},
		"what nobody may read":                      {"unreadable", false, false},
		"that of an earlier one of the name":        {"earlier", false, false},
		"what exists there alone":                   {"only-there", false, false},
		"what exists nowhere":                       {"none", false, false},
		"what exists nowhere, and may be missing":   {"none", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			want := debugged(pod)
			want.Spec.EphemeralContainers[0].EnvFrom = from(test.secret, test.optional)
			err := names.check(t.Context(), &below.Connection{Client: client}, pod, want)
			if (err == nil) != test.want || err != nil && !apierrors.IsInvalid(err) {
				t.Errorf("%v, want it allowed: %t", err, test.want)
			}
		})
	}
}
