package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
	"github.com/manifold-dev/manifold/pkg/podhooks"
)

func published(at string) []runtime.Object {
	in := func(name string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: name}, Data: data}
	}
	return []runtime.Object{in(manifoldv1alpha1.SettingsName, map[string]string{manifoldv1alpha1.SettingAdvertiseURL: at}), in(rootCAName, map[string]string{rootCAKey: "PEM"})}
}

func TestWhereAClusterAsks(t *testing.T) {
	l := &logical{client: fake.NewClientset(published("https://manifold.example:6443")...)}
	got, err := l.podWebhook(t.Context(), "east")
	want := grants.PodWebhook{BaseURL: "https://manifold.example:6443", CABundle: "PEM", Cluster: "east", Token: grants.TokenToCome}
	if err != nil || *got != want {
		t.Errorf("it asks by %+v: %v", got, err)
	}
	l = &logical{client: fake.NewClientset(published("")...)}
	if _, err := l.podWebhook(t.Context(), "east"); err == nil {
		t.Error("nothing says where, and that is no error")
	}
}

func TestTheTokenThatAClusterAsksWithIsRenewed(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: manifoldv1alpha1.SystemNamespace, Name: credentialName("east")}, Data: map[string][]byte{kubeconfigKey: []byte(storedKubeconfig)}}
	l := &logical{client: fake.NewClientset(append(published("https://manifold.example"), secret)...)}
	first, stored, err := l.podWebhookToken(t.Context(), "east")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.storePodWebhookTokens(t.Context(), "east", stored); err != nil {
		t.Fatal(err)
	}
	second, stored, err := l.podWebhookToken(t.Context(), "east")
	if err != nil || second == first {
		t.Fatalf("token %q after %q: %v", second, first, err)
	}
	if now := time.Now(); !podhooks.Accepts(stored, second, now) || !podhooks.Accepts(stored, first, now) || podhooks.Accepts(stored, first, now.Add(time.Hour)) {
		t.Errorf("what is stored is %s", stored)
	}
	if kept := credentialOf(t, l); len(kept) != 2 || strings.Contains(string(kept[podhooks.TokensKey]), first) {
		t.Errorf("stored is %v", kept)
	}
	if err := l.forget(t.Context(), "east"); err != nil {
		t.Fatal(err)
	}
	if kept := credentialOf(t, l); kept[podhooks.TokensKey] != nil {
		t.Errorf("after a revocation there is %v", kept)
	}
}
