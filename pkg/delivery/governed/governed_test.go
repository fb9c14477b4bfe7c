package governed

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

var (
	deployments = appsv1.SchemeGroupVersion.WithResource("deployments")
	policies    = networkingv1.SchemeGroupVersion.WithResource("networkpolicies")
	secrets     = corev1.SchemeGroupVersion.WithResource("secrets")
)

// selecting is an Application that selects what has a label app.
func selecting(name, app string, change ...func(*v1alpha1.Application)) *v1alpha1.Application {
	out := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	out.Spec.Source.Selector = &v1alpha1.ObjectSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
	for _, c := range change {
		c(out)
	}
	return out
}

func TestWhoGovernsAnObject(t *testing.T) {
	named := func(kinds ...string) func(*v1alpha1.Application) {
		return func(app *v1alpha1.Application) { app.Spec.Source.Selector.Kinds = kinds }
	}
	for name, test := range map[string]struct {
		applications []*v1alpha1.Application
		resource     schema.GroupVersionResource
		object       func(*metav1.ObjectMeta)
		secret       corev1.SecretType
		want         string
	}{
		"nobody":                                {},
		"who selects it":                        {applications: []*v1alpha1.Application{selecting("api", "api"), selecting("web", "web")}, want: "web"},
		"the first of several":                  {applications: []*v1alpha1.Application{selecting("web", "web"), selecting("a", "web")}, want: "a"},
		"the one of several that it belongs to": {applications: []*v1alpha1.Application{selecting("a", "web"), selecting("web", "web")}, object: func(o *metav1.ObjectMeta) { o.Labels[v1alpha1.LabelApplication] = "web" }, want: "web"},
		"nobody of another namespace":           {applications: []*v1alpha1.Application{selecting("web", "web", func(a *v1alpha1.Application) { a.Namespace = "other" })}},
		"nobody who is going":                   {applications: []*v1alpha1.Application{selecting("web", "web", func(a *v1alpha1.Application) { a.DeletionTimestamp = &metav1.Time{} })}},
		"nobody who leaves clusters to plugins": {applications: []*v1alpha1.Application{selecting("web", "web", func(a *v1alpha1.Application) { a.Spec.PluginsOnly = true })}},
		"nobody with another source":            {applications: []*v1alpha1.Application{selecting("web", "web", func(a *v1alpha1.Application) { a.Spec.Source = v1alpha1.Source{} })}},
		"who is suspended, or waits for somebody": {applications: []*v1alpha1.Application{selecting("web", "web", func(a *v1alpha1.Application) {
			a.Spec.Suspend, a.Spec.Trigger.Mode = true, v1alpha1.TriggerManual
		})}, want: "web"},
		"nobody by a selector that means nothing": {applications: []*v1alpha1.Application{selecting("web", "web", func(a *v1alpha1.Application) {
			a.Spec.Source.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}
		})}},
		"who names its kind":                       {applications: []*v1alpha1.Application{selecting("web", "web", named("Deployment"))}, want: "web"},
		"who names its kind with the group":        {applications: []*v1alpha1.Application{selecting("web", "web", named("Service", "Deployment.apps"))}, want: "web"},
		"nobody who names others":                  {applications: []*v1alpha1.Application{selecting("web", "web", named("Service"))}},
		"a kind that has to be named, by nobody":   {applications: []*v1alpha1.Application{selecting("web", "web")}, resource: policies},
		"a kind that has to be named, by who does": {applications: []*v1alpha1.Application{selecting("web", "web", named("NetworkPolicy"))}, resource: policies, want: "web"},
		"nobody what a controller makes": {applications: []*v1alpha1.Application{selecting("web", "web")}, object: func(o *metav1.ObjectMeta) {
			o.OwnerReferences = []metav1.OwnerReference{{Kind: "CronJob", Controller: ptr.To(true)}}
		}},
		"nobody a copy for a variant":       {applications: []*v1alpha1.Application{selecting("web", "web")}, object: func(o *metav1.ObjectMeta) { o.Annotations = map[string]string{v1alpha1.AnnotationVariant: "canary"} }},
		"nobody what is going":              {applications: []*v1alpha1.Application{selecting("web", "web")}, object: func(o *metav1.ObjectMeta) { o.DeletionTimestamp = &metav1.Time{} }},
		"who selects a Secret":              {applications: []*v1alpha1.Application{selecting("web", "web")}, resource: secrets, secret: corev1.SecretTypeOpaque, want: "web"},
		"nobody the manifests of revisions": {applications: []*v1alpha1.Application{selecting("web", "web")}, resource: secrets, secret: v1alpha1.SecretRevision},
		"nobody the token of an account":    {applications: []*v1alpha1.Application{selecting("web", "web")}, resource: secrets, secret: corev1.SecretTypeServiceAccountToken},
	} {
		t.Run(name, func(t *testing.T) {
			if test.resource.Empty() {
				test.resource = deployments
			}
			kind, governable := KindOf(test.resource)
			if !governable {
				t.Fatalf("%s cannot be governed", test.resource)
			}
			of := metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}}
			if test.object != nil {
				test.object(&of)
			}
			var object metav1.Object = &appsv1.Deployment{ObjectMeta: of}
			if test.secret != "" {
				object = &corev1.Secret{ObjectMeta: of, Type: test.secret}
			}
			got := ""
			if by := By(test.applications, kind, object); by != nil {
				got = by.Name
			}
			if got != test.want {
				t.Errorf("governed by %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhatStaysInTheLogicalClusterIsNotHeld(t *testing.T) {
	for _, resource := range []schema.GroupVersionResource{
		batchv1.SchemeGroupVersion.WithResource("cronjobs"), corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithResource("namespaces"),
		{Group: "example.com", Version: "v1", Resource: "gizmos"},
	} {
		if _, governable := KindOf(resource); governable {
			t.Errorf("%s can be governed", resource.Resource)
		}
	}
}
