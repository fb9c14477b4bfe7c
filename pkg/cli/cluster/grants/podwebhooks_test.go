package grants

import (
	"slices"
	"testing"
	"time"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/podhooks"
)

const podHooksOf = "0a1b2c3d-4e5f-6789"

func TestAClusterAsksAboutPodsOfNamespacesThatAreToldTo(t *testing.T) {
	hooks := podHooks(podHooksOf, PodWebhook{"https://manifold.example", "PEM", "east", "secret"})
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

func TestLoopback(t *testing.T) {
	for at, want := range map[string]bool{
		"https://manifold.example:6443": false, "https://10.0.0.7:6443": false, "https://127.0.0.1:6443": true, "https://[::1]:6443": true, "https://localhost:6443": true,
	} {
		if (PodWebhook{BaseURL: at}).Loopback() != want {
			t.Errorf("%s is told to be reached by its host alone: %t", at, !want)
		}
	}
}
