package physical

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
)

func TestWhatSomebodyHasChangedOfHowAClusterAsksIsFound(t *testing.T) {
	as := func(token string) *admissionregistrationv1.MutatingWebhookConfiguration {
		made, err := grants.ForPodWebhooks(testLogical, grants.PodWebhook{BaseURL: "https://manifold.example", CABundle: "PEM", Cluster: "east", Token: token})
		if err != nil {
			t.Fatal(err)
		}
		out := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(made[0].Object.Object, out); err != nil {
			t.Fatal(err)
		}
		return out
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
			c := &Cluster{client: client}
			how, err := c.expectedWebhook(t.Context(), testLogical, manifoldv1alpha1.ClusterAllows{PodWebhooks: test.said},
				&grants.PodWebhook{BaseURL: "https://manifold.example", CABundle: "PEM", Cluster: "east", Token: grants.TokenToCome})
			if err != nil || (how == nil) != test.none {
				t.Fatalf("it is to ask by %+v: %v", how, err)
			}
			if test.none {
				return
			}
			all, err := grants.ForPodWebhooks(testLogical, *how)
			if err != nil {
				t.Fatal(err)
			}
			differs := []string{"missing"}
			if test.live != nil {
				content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(test.live)
				if err != nil {
					t.Fatal(err)
				}
				if differs, err = all[0].Differences(&unstructured.Unstructured{Object: content}); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(differs, "\n"); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("it differs by %q, want %q", got, test.want)
			}
		})
	}
}
