package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/podhooks"
)

const podHooksOf = "0a1b2c3d-4e5f-6789"

func published(at string) []runtime.Object {
	in := func(name string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: name}, Data: data}
	}
	return []runtime.Object{in(manifoldv1alpha1.SettingsName, map[string]string{manifoldv1alpha1.SettingAdvertiseURL: at}), in(rootCAName, map[string]string{rootCAKey: "PEM"})}
}

func TestWhereAClusterAsks(t *testing.T) {
	for at, loopback := range map[string]bool{
		"https://manifold.example:6443": false, "https://10.0.0.7:6443": false, "https://127.0.0.1:6443": true, "https://[::1]:6443": true, "https://localhost:6443": true,
	} {
		l := &logical{client: fake.NewClientset(published(at)...)}
		how, err := l.askingOf(t.Context(), "east")
		if err != nil || how.base != at || how.authority != "PEM" || how.cluster != "east" || how.token != tokenToCome {
			t.Fatalf("it asks by %+v: %v", how, err)
		}
		if how.loopback() != loopback {
			t.Errorf("%s is told to be reached by its host alone: %t", at, !loopback)
		}
	}
	l := &logical{client: fake.NewClientset(published("")...)}
	if _, err := l.askingOf(t.Context(), "east"); err == nil {
		t.Error("nothing says where, and that is no error")
	}
}

func TestAClusterAsksAboutPodsOfNamespacesThatAreToldTo(t *testing.T) {
	hooks := podHooks(podHooksOf, asking{"https://manifold.example", "PEM", "east", "secret"})
	var names []string
	for _, w := range hooks.Webhooks {
		names = append(names, w.Name)
		selects := w.NamespaceSelector.MatchLabels
		if selects[manifoldv1alpha1.LabelLogicalCluster] != podHooksOf || selects[manifoldv1alpha1.LabelPodWebhooks] != string(*w.FailurePolicy) || len(selects) != 2 {
			t.Errorf("%s with failurePolicy %s is for namespaces with %v", w.Name, *w.FailurePolicy, selects)
		}
		if *w.ClientConfig.URL != "https://manifold.example/manifold.dev/pod-webhooks/east/secret" || string(w.ClientConfig.CABundle) != "PEM" {
			t.Errorf("%s asks at %s", w.Name, *w.ClientConfig.URL)
		}
		if *w.TimeoutSeconds > 30 || time.Duration(*w.TimeoutSeconds)*time.Second != podhooks.Timeout {
			t.Errorf("%s waits for %d seconds", w.Name, *w.TimeoutSeconds)
		}
	}
	if !slices.Equal(names, []string{"fail.pods.manifold.dev", "ignore.pods.manifold.dev"}) {
		t.Errorf("webhooks are %v", names)
	}
}

func TestWhatSomebodyHasChangedOfHowAClusterAsksIsFound(t *testing.T) {
	as := func(token string) *admissionregistrationv1.MutatingWebhookConfiguration {
		return podHooks(podHooksOf, asking{"https://manifold.example", "PEM", "east", token})
	}
	elsewhere := as("secret")
	*elsewhere.Webhooks[1].ClientConfig.URL = "https://elsewhere.example/secret"
	wider := as("secret")
	wider.Webhooks[0].NamespaceSelector = &metav1.LabelSelector{}
	foreign := as("secret")
	foreign.Labels = nil
	for name, test := range map[string]struct {
		live *admissionregistrationv1.MutatingWebhookConfiguration
		said bool
		none bool // no piece to compare with
		want string
	}{
		"as it was made, with whatever token": {live: as("anything"), said: true},
		"with another address":                {live: elsewhere, said: true, want: "webhooks[1].clientConfig.url"},
		"for all namespaces":                  {live: wider, said: true, want: "webhooks[0].namespaceSelector"},
		"not at all, as it is to be":          {none: true},
		"not at all, though it was let":       {said: true, want: "missing"},
		"by one of somebody else's":           {live: foreign, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			if test.live != nil {
				client = fake.NewClientset(test.live)
			}
			p := &physical{client: client, asks: &asking{"https://manifold.example", "PEM", "east", tokenToCome}, asksSaid: test.said}
			how, err := p.askingAsIs(t.Context(), podHooksOf)
			if err != nil || (how == nil) != test.none {
				t.Fatalf("it is to ask by %+v: %v", how, err)
			}
			if test.none {
				return
			}
			all, err := podHookPieces(podHooksOf, *how)
			if err != nil {
				t.Fatal(err)
			}
			differs := []string{"missing"}
			if test.live != nil {
				content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(test.live)
				if err != nil {
					t.Fatal(err)
				}
				if differs, err = all[0].differences(&unstructured.Unstructured{Object: content}); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(differs, "\n"); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("it differs by %q, want %q", got, test.want)
			}
		})
	}
}

func TestTheTokenThatAClusterAsksWithIsRenewed(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: inSystem(credentialName("east")), Data: map[string][]byte{kubeconfigKey: []byte(storedKubeconfig)}}
	l := &logical{client: fake.NewClientset(append(published("https://manifold.example"), secret)...)}
	first, stored, err := l.askingToken(t.Context(), "east")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.storeAsking(t.Context(), "east", stored); err != nil {
		t.Fatal(err)
	}
	second, stored, err := l.askingToken(t.Context(), "east")
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
