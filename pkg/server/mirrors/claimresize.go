package mirrors

import (
	"context"

	"k8s.io/apiserver/pkg/admission"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/persistentvolume/resize"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// ResizeBelow keeps the plugin that knows which volumes can grow away from claims that clusters hold: it knows by the storage classes above,
// and the class that counts is that of the claim's cluster, whose own plugin is asked.
func ResizeBelow(plugin admission.Interface, name string) admission.Interface {
	validating, ok := plugin.(admission.ValidationInterface)
	if name != resize.PluginName || !ok {
		return plugin
	}
	return resizePlugin{validating}
}

type resizePlugin struct {
	admission.ValidationInterface
}

// Validate implements admission.ValidationInterface.
func (p resizePlugin) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	old, ok := a.GetOldObject().(*api.PersistentVolumeClaim)
	if ok && (old.Annotations[v1alpha1.AnnotationCluster] != "" || old.Annotations[v1alpha1.AnnotationStatus] != "") {
		return nil
	}
	return p.ValidationInterface.Validate(ctx, a, o)
}
