package admission

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestNobodyButTheirControllerWritesTheStatusOfPlugins(t *testing.T) {
	for name, test := range map[string]struct {
		group, resource, subresource string
		by                           user.Info
		refused                      bool
	}{
		"an administrator":              {delivery.GroupName, "plugins", "status", &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}, true},
		"nobody":                        {delivery.GroupName, "plugins", "status", nil, true},
		"another controller of ours":    {delivery.GroupName, "plugins", "status", &user.DefaultInfo{Name: v1alpha1.DeliveryUser}, true},
		"who only sounds alike":         {delivery.GroupName, "plugins", "status", &user.DefaultInfo{Name: v1alpha1.PluginsUser + ":x"}, true},
		"their controller":              {delivery.GroupName, "plugins", "status", &user.DefaultInfo{Name: v1alpha1.PluginsUser}, false},
		"a spec is for administrators":  {delivery.GroupName, "plugins", "", &user.DefaultInfo{Name: "admin"}, false},
		"other kinds of the group":      {delivery.GroupName, "applications", "status", &user.DefaultInfo{Name: v1alpha1.DeliveryUser}, false},
		"plugins of somebody else's":    {"example.com", "plugins", "status", &user.DefaultInfo{Name: "jane"}, false},
		"the scale of nothing we serve": {delivery.GroupName, "plugins", "scale", &user.DefaultInfo{Name: "jane"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			object := &delivery.Plugin{ObjectMeta: metav1.ObjectMeta{Name: "wait"}}
			gvr := schema.GroupVersionResource{Group: test.group, Version: "v1alpha1", Resource: test.resource}
			err := (&pluginStatus{}).Validate(t.Context(), admission.NewAttributesRecord(object, object, gvr.GroupVersion().WithKind("Plugin"), "", "wait",
				gvr, test.subresource, admission.Update, nil, false, test.by), nil)
			if got := err != nil; got != test.refused {
				t.Fatalf("refused %t, want %t: %v", got, test.refused, err)
			}
			if err != nil && !strings.Contains(err.Error(), "Manifold alone writes the status of a plugin") {
				t.Errorf("it says %q", err)
			}
		})
	}
}
