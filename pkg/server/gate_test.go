package server

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
)

// What takes a server, and no cluster: what is applied right behind an Application is held, whoever writes what, and an Application that goes lets it go.
func TestWhatAnApplicationSelectsWaitsForItsFirstRelease(t *testing.T) {
	ctx := t.Context()
	client, config, _ := serve(t, "gate")
	client = clientOf(t, config)
	own, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	about := func(name, app string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}, Annotations: map[string]string{v1alpha1.AnnotationAwaits: "forged"}}
	}
	deployment := func(name, app string) *appsv1.Deployment {
		out := &appsv1.Deployment{ObjectMeta: about(name, app)}
		out.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"pods": name}}
		out.Spec.Template.Labels = map[string]string{"pods": name}
		out.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
		return out
	}
	want := func(claim string, of metav1.Object, err error, application string) {
		t.Helper()
		if got := of.GetAnnotations()[v1alpha1.AnnotationAwaits]; err != nil || got != application {
			t.Errorf("%s: it awaits %q, want %q (%v)", claim, got, application, err)
		}
	}
	for i := range 5 {
		name := fmt.Sprintf("web-%d", i)
		app := &delivery.Application{ObjectMeta: metav1.ObjectMeta{Name: name}}
		app.Spec.Source.Selector = &delivery.ObjectSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}}
		app.Spec.Trigger.Mode = delivery.TriggerManual
		if _, err := own.DeliveryV1alpha1().Applications("shop").Create(ctx, app, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		d, err := client.AppsV1().Deployments("shop").Create(ctx, deployment(name, name), metav1.CreateOptions{})
		want("a Deployment right behind its Application", d, err, name)
		m, err := client.CoreV1().ConfigMaps("shop").Create(ctx, &corev1.ConfigMap{ObjectMeta: about(name, name)}, metav1.CreateOptions{})
		want("a ConfigMap", m, err, name)
		s, err := client.CoreV1().Secrets("shop").Create(ctx, &corev1.Secret{ObjectMeta: about(name, name)}, metav1.CreateOptions{})
		want("a Secret", s, err, name)
	}
	d, err := client.AppsV1().Deployments("shop").Create(ctx, deployment("tried", "web-0"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	want("a dry run", d, err, "web-0")
	d, err = client.AppsV1().Deployments("shop").Create(ctx, deployment("free", "free"), metav1.CreateOptions{})
	want("what nobody selects", d, err, "")
	for _, subresource := range []string{"", "status"} {
		patch := []byte(`{"metadata":{"annotations":{"note":"mine","` + v1alpha1.AnnotationAwaits + `":null}}}`)
		var subresources []string
		if subresource != "" {
			subresources = []string{subresource}
		}
		d, err = client.AppsV1().Deployments("shop").Patch(ctx, "web-0", types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
		want("who takes the mark off, by "+subresource, d, err, "web-0")
		patch = []byte(`{"metadata":{"annotations":{"` + v1alpha1.AnnotationAwaits + `":"web-0"}}}`)
		d, err = client.AppsV1().Deployments("shop").Patch(ctx, "free", types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
		want("who puts a mark on, by "+subresource, d, err, "")
	}
	d, err = client.AppsV1().Deployments("shop").Patch(ctx, "web-1", types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"free"}}}`), metav1.PatchOptions{})
	want("what is not selected any more", d, err, "")
	soon(t, "its Deployment says what it waits for", func() error {
		d, err := client.AppsV1().Deployments("shop").Get(ctx, "web-0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if said := fmt.Sprint(d.Status.Conditions); !strings.Contains(said, "AwaitsRelease") || !strings.Contains(said, "manifold app sync web-0 -n shop") || d.Status.ObservedGeneration != 0 {
			return fmt.Errorf("its status is %+v", d.Status)
		}
		return nil
	})
	if err := own.DeliveryV1alpha1().Applications("shop").Delete(ctx, "web-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	soon(t, "what waited for an Application that is gone is let go", func() error {
		d, err := client.AppsV1().Deployments("shop").Get(ctx, "web-0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		m, err := client.CoreV1().ConfigMaps("shop").Get(ctx, "web-0", metav1.GetOptions{})
		if err == nil && (d.Annotations[v1alpha1.AnnotationAwaits] != "" || m.Annotations[v1alpha1.AnnotationAwaits] != "") {
			err = fmt.Errorf("it waits: %v, %v", d.Annotations, m.Annotations)
		}
		return err
	})
}
