package explain

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestDecidesByWhatTheServerSays(t *testing.T) {
	published := func(cluster, unschedulable string) []runtime.Object {
		return []runtime.Object{&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: manifoldv1alpha1.SettingsName},
			Data: map[string]string{
				manifoldv1alpha1.SettingClusterToleration: cluster, manifoldv1alpha1.SettingUnschedulableToleration: unschedulable,
			},
		}}
	}
	resource := corev1.Resource("configmaps")
	for name, test := range map[string]struct {
		objects                []runtime.Object
		err                    error
		cluster, unschedulable time.Duration
		wantErr                string
	}{
		"its flags":                                {objects: published("1m0s", "30s"), cluster: time.Minute, unschedulable: 30 * time.Second},
		"the defaults if it says nothing":          {},
		"the defaults if the user may not read it": {err: apierrors.NewForbidden(resource, "manifold", errors.New("no"))},
		"nothing if it cannot be asked":            {err: apierrors.NewServiceUnavailable("later"), wantErr: "read what the server decides by: later"},
		"nothing that is no duration":              {objects: published("1m0s", "soon"), wantErr: "ConfigMap kube-public/manifold: unschedulable-toleration"},
	} {
		t.Run(name, func(t *testing.T) {
			client := kubefake.NewClientset(test.objects...)
			if test.err != nil {
				client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.err })
			}
			got, err := gatherer{client: client}.settings(t.Context())
			if (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Fatalf("error %v, want %q", err, test.wantErr)
			}
			if err == nil && (got.Toleration != test.cluster || got.Unschedulable != test.unschedulable) {
				t.Errorf("tolerations %s and %s, want %s and %s", got.Toleration, got.Unschedulable, test.cluster, test.unschedulable)
			}
		})
	}
}
