package podwebhooks

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	api "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // objects are converted

	"github.com/manifold-dev/manifold/pkg/mirror"
)

// pluginFake stands for the plugins that call webhooks.
type pluginFake struct {
	*admission.Handler
	admit    func(a admission.Attributes, pod *api.Pod) error
	validate func(a admission.Attributes, pod *api.Pod) error
}

func (p pluginFake) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return p.admit(a, a.GetObject().(*api.Pod))
}

func (p pluginFake) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return p.validate(a, a.GetObject().(*api.Pod))
}

var replicaSetKind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

func newcomer() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-x1", GenerateName: "web-", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}, ServiceAccountName: "default", DeprecatedServiceAccount: "default"},
	}
}

func TestWebhooksSeeAPodAsOnASingleCluster(t *testing.T) {
	var names []string
	again := false
	plugin := pluginFake{
		admit: func(a admission.Attributes, pod *api.Pod) error {
			names = append(names, pod.Name)
			if user := a.GetUserInfo(); user.GetName() != "system:serviceaccount:kube-system:replicaset-controller" || len(user.GetGroups()) != 2 {
				t.Errorf("it is made by %v", user)
			}
			if a.IsDryRun() || a.GetOperation() != admission.Create || a.GetNamespace() != "shop" || a.GetResource().Resource != "pods" {
				t.Errorf("asked is about %+v", a)
			}
			if again = a.GetReinvocationContext().IsReinvoke(); !again {
				a.GetReinvocationContext().SetShouldReinvoke()
				pod.Labels["admitted"] = "yes"
			}
			return nil
		},
		validate: func(a admission.Attributes, pod *api.Pod) error {
			names = append(names, pod.Name)
			if pod.Labels["admitted"] != "yes" || pod.Status.Phase != api.PodPending {
				t.Errorf("checked is %+v", pod)
			}
			return nil
		},
	}
	p := &Webhooks{}
	p.Keep(plugin, mutatingwebhook.PluginName)
	p.Keep(plugin, validatingwebhook.PluginName)
	p.Keep(pluginFake{}, mutatingwebhook.PluginName) // that of another server
	before, after, err := p.Admit(t.Context(), newcomer(), replicaSetKind, false, false)
	if err != nil || !again || len(names) != 3 || names[0] != "" || names[1] != "" || names[2] != "web-x1" {
		t.Fatalf("asked was about %q, again %t, %v", names, again, err)
	}
	if change, err := mirror.Change(before, after); string(change) != `{"metadata":{"labels":{"admitted":"yes"}}}` || err != nil {
		t.Errorf("the change is %s, %v", change, err)
	}
}

func TestWhatNoWebhookChangesIsNoChange(t *testing.T) {
	before, after, err := (&Webhooks{}).Admit(t.Context(), newcomer(), replicaSetKind, true, false)
	if err != nil {
		t.Fatal(err)
	}
	after.Status = corev1.PodStatus{}
	if change, err := mirror.Change(before, after); change != nil || err != nil {
		t.Errorf("the change is %s, %v", change, err)
	}
}

func TestARefusalOfAWebhookIsTheAnswer(t *testing.T) {
	refusal := errors.New("no")
	ok := func(admission.Attributes, *api.Pod) error { return nil }
	no := func(admission.Attributes, *api.Pod) error { return refusal }
	for name, plugin := range map[string]pluginFake{"that changes": {admit: no, validate: ok}, "that checks": {admit: ok, validate: no}} {
		p := &Webhooks{mutating: plugin, validating: plugin}
		if _, _, err := p.Admit(t.Context(), newcomer(), replicaSetKind, false, false); !errors.Is(err, refusal) {
			t.Errorf("one %s: %v", name, err)
		}
	}
	if _, _, err := (&Webhooks{}).Admit(t.Context(), newcomer(), schema.GroupVersionKind{Kind: "Widget"}, false, false); err == nil {
		t.Error("a Widget makes pods")
	}
}
