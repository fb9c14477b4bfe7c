package plugins

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/fetch"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/host"
)

func secret(namespace string, kind corev1.SecretType, data map[string]string) *corev1.Secret {
	out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "login"}, Type: kind, Data: map[string][]byte{}}
	for key, value := range data {
		out.Data[key] = []byte(value)
	}
	return out
}

func TestTheSecretOfAPluginIsHandedToItsFetchAlone(t *testing.T) {
	const hidden = "hunter2"
	basic := map[string]string{"username": "jane", "password": hidden}
	for name, test := range map[string]struct {
		url    string
		none   bool
		secret *corev1.Secret
		want   fetch.Login
	}{
		"a name and a password for https":  {url: "https://a.example/wait", secret: secret("manifold-system", corev1.SecretTypeBasicAuth, basic), want: fetch.Login{Username: "jane", Password: hidden}},
		"the same for a registry":          {url: "oci://a.example/wait:v1", secret: secret("manifold-system", corev1.SecretTypeBasicAuth, basic), want: fetch.Login{Username: "jane", Password: hidden}},
		"a configuration of Docker":        {url: "oci://a.example/wait:v1", secret: secret("manifold-system", corev1.SecretTypeDockerConfigJson, map[string]string{".dockerconfigjson": "{}"}), want: fetch.Login{Docker: "{}"}},
		"nothing is asked for":             {url: "https://a.example/wait", none: true, secret: secret("manifold-system", corev1.SecretTypeBasicAuth, basic)},
		"it is not there":                  {url: "https://a.example/wait", want: fetch.Login{Missing: "spec.secretRef: Secret manifold-system/login does not exist: make it, of type kubernetes.io/basic-auth or kubernetes.io/dockerconfigjson"}},
		"one of another namespace is none": {url: "https://a.example/wait", secret: secret("shop", corev1.SecretTypeBasicAuth, basic), want: fetch.Login{Missing: "spec.secretRef: Secret manifold-system/login does not exist: make it, of type kubernetes.io/basic-auth or kubernetes.io/dockerconfigjson"}},
		"credentials of a cluster":         {url: "https://a.example/wait", secret: secret("manifold-system", corev1.SecretTypeOpaque, basic), want: fetch.Login{Missing: "spec.secretRef: Secret manifold-system/login is of type Opaque: a URL of https takes one of type kubernetes.io/basic-auth"}},
		"one of registries for https":      {url: "https://a.example/wait", secret: secret("manifold-system", corev1.SecretTypeDockerConfigJson, nil), want: fetch.Login{Missing: "spec.secretRef: Secret manifold-system/login is of type kubernetes.io/dockerconfigjson: a URL of https takes one of type kubernetes.io/basic-auth"}},
		"an empty one":                     {url: "oci://a.example/wait:v1", secret: secret("manifold-system", corev1.SecretTypeBasicAuth, nil), want: fetch.Login{Missing: "spec.secretRef: Secret manifold-system/login has neither username nor password"}},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := plugin("wait")
			plugin.Spec.URL = test.url
			if !test.none {
				plugin.Spec.SecretRef = &v1alpha1.PluginSecretReference{Name: "login"}
			}
			w := newWorld(t, true, plugin)
			if test.secret != nil {
				if err := w.kubeInformers.Core().V1().Secrets().Informer().GetIndexer().Add(test.secret); err != nil {
					t.Fatal(err)
				}
			}
			w.host.says[plugin.Name] = host.Status{Reason: v1alpha1.PluginReasonFetching}
			status := w.step(plugin.Name)
			if got := w.host.specs[plugin.Name].Login; got != test.want {
				t.Errorf("the login is not the one that is wanted, or says %q, want %q", got.Missing, test.want.Missing)
			}
			if said := fmt.Sprintf("%+v %+v", status, w.host.specs[plugin.Name]); strings.Contains(said, hidden) {
				t.Errorf("it shows the password: %s", said)
			}
		})
	}
}

func TestAPluginIsLookedAtWhenItsSecretChanges(t *testing.T) {
	with, without := plugin("wait"), plugin("wait")
	with.Spec.SecretRef, without.Name = &v1alpha1.PluginSecretReference{Name: "login"}, "without"
	w := newWorld(t, true, with, without)
	w.secretChanged(secret("shop", corev1.SecretTypeBasicAuth, nil))
	if w.queue.Len() != 0 {
		t.Error("a Secret of a namespace of users has a plugin looked at")
	}
	w.secretChanged(secret("manifold-system", corev1.SecretTypeBasicAuth, nil))
	if name, _ := w.queue.Get(); name != with.Name || w.queue.Len() != 0 {
		t.Errorf("looked at is %q, and %d more", name, w.queue.Len())
	}
}

func TestWhoHasAskedForARestartIsTold(t *testing.T) {
	plugin := plugin("wait")
	plugin.Annotations = map[string]string{v1alpha1.AnnotationRestartAt: "now", v1alpha1.AnnotationAskedBy: "the-boss"}
	plugin.Status.RestartAsked = &v1alpha1.PluginAsked{For: "now", By: "ann", Time: metav1.NewTime(now)}
	w := newWorld(t, true, plugin)
	w.host.says[plugin.Name] = host.Status{Ready: true, Reason: v1alpha1.PluginReasonAnswering, Started: now, Incarnation: 2, RestartedFor: "now"}
	status := w.step(plugin.Name)
	if status.RestartAsked == nil || status.RestartAsked.By != "ann" || status.RestartedFor != "now" {
		t.Errorf("the status is %+v", status)
	}
	told := w.told()
	if want := `Normal Asked it is restarted, for which user "ann" has asked`; !strings.Contains(strings.Join(told, "\n"), want) || strings.Contains(strings.Join(told, "\n"), "the-boss") {
		t.Errorf("told is %q, want %q", told, want)
	}
	w.step(plugin.Name)
	if again := w.told(); len(again) > 0 {
		t.Errorf("it is told again: %q", again)
	}
}

func TestAPluginIsToldTheNameThatFilesCallItBy(t *testing.T) {
	plugin := plugin("wait")
	plugin.Name, plugin.Spec.PipecdName, plugin.Spec.InstallTools = "k8s-plugin", "k8s_plugin", true
	if got := specOf(plugin); got.Called != "k8s_plugin" || !got.InstallTools {
		t.Errorf("it is called %q, and may install: %t", got.Called, got.InstallTools)
	}
	plugin.Spec.PipecdName = ""
	if got := specOf(plugin).Called; got != "k8s-plugin" {
		t.Errorf("it is called %q", got)
	}
}
