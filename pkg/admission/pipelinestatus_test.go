package admission

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestNobodyButManifoldWritesTheStatusOfAPipeline(t *testing.T) {
	const group, older = "pipelines.weave.works", "pipelines.wego.weave.works"
	admin := &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}
	for name, test := range map[string]struct {
		group, resource, subresource string
		by                           user.Info
		refused                      bool
	}{
		"a user":                         {group, "pipelines", "status", &user.DefaultInfo{Name: "mallory"}, true},
		"a user, in the older group":     {older, "pipelines", "status", &user.DefaultInfo{Name: "mallory"}, true},
		"an administrator":               {group, "pipelines", "status", admin, true},
		"nobody":                         {group, "pipelines", "status", nil, true},
		"a controller of Kubernetes":     {group, "pipelines", "status", &user.DefaultInfo{Name: "system:serviceaccount:kube-system:generic-garbage-collector"}, true},
		"who writes down what is asked":  {group, "pipelines", "status", &user.DefaultInfo{Name: v1alpha1.AsksUser}, false},
		"who only sounds alike":          {group, "pipelines", "status", &user.DefaultInfo{Name: v1alpha1.ControllerUser + "s"}, true},
		"a spec is for users":            {group, "pipelines", "", &user.DefaultInfo{Name: "jane"}, false},
		"other kinds of the group":       {group, "templates", "status", &user.DefaultInfo{Name: "jane"}, false},
		"pipelines of somebody else's":   {"tekton.dev", "pipelines", "status", &user.DefaultInfo{Name: "jane"}, false},
		"a view of a cluster, by anyone": {"gitops.weave.works", "gitopsclusters", "status", &user.DefaultInfo{Name: "jane"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "podinfo", "namespace": "shop"}}}
			gvr := schema.GroupVersionResource{Group: test.group, Version: "v1alpha1", Resource: test.resource}
			err := (&pipelineStatus{}).Validate(t.Context(), admission.NewAttributesRecord(object, object, gvr.GroupVersion().WithKind("Pipeline"), "shop", "podinfo",
				gvr, test.subresource, admission.Update, nil, false, test.by), nil)
			if got := err != nil; got != test.refused {
				t.Fatalf("refused %t, want %t: %v", got, test.refused, err)
			}
			if err != nil && !strings.Contains(err.Error(), "Manifold alone writes the status of a pipeline") {
				t.Errorf("it says %q", err)
			}
		})
	}
}
