package admission

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement/handmade"
	"github.com/manifold-dev/manifold/pkg/podhooks"
)

// podWebhooks warns of webhooks that are registered for new pods, as long as there are clusters that do not ask about pods: those of workloads are
// made there, and a mirror is not what runs, so such a webhook would be waited for in vain.
type podWebhooks struct {
	*admission.Handler
	joined func() []*v1alpha1.Cluster
}

var _ admission.ValidationInterface = &podWebhooks{}

// mostNamed is how many clusters a warning names.
const mostNamed = 3

// Validate warns of each webhook that the object before did not have registered so, and refuses nothing.
func (p *podWebhooks) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetResource().Group != admissionregistrationv1.GroupName || a.GetSubresource() != "" {
		return nil
	}
	before, err := seesPods(a.GetKind().Kind, a.GetOldObject(), o)
	if err != nil {
		return err
	}
	now, err := seesPods(a.GetKind().Kind, a.GetObject(), o)
	if err != nil || len(now) == 0 {
		return err
	}
	silent := p.silent()
	if len(silent) == 0 {
		return nil
	}
	for _, name := range now {
		if !slices.Contains(before, name) {
			warning.AddWarning(ctx, "", fmt.Sprintf("webhook %q is not called for the pods that Deployments and other workloads create in %s. "+
				"To have it called, run: %s. Or register it there as well", name, named(silent), handmade.LetPodWebhooksIn(silent[0].Name, silent[0].Spec.Allows)))
		}
	}
	return nil
}

// silent returns the clusters that do not ask about pods, by name.
func (p *podWebhooks) silent() []*v1alpha1.Cluster {
	silent := slices.DeleteFunc(p.joined(), func(c *v1alpha1.Cluster) bool { return c.Spec.Allows.PodWebhooks })
	slices.SortFunc(silent, func(a, b *v1alpha1.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	return silent
}

// named names clusters as the end of a sentence, the first few of many.
func named(clusters []*v1alpha1.Cluster) string {
	names := make([]string, 0, len(clusters))
	for _, c := range clusters {
		names = append(names, fmt.Sprintf("%q", c.Name))
	}
	word := "cluster "
	if len(names) > 1 {
		word = "clusters "
	}
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed], fmt.Sprintf("%d more", more))
	}
	return word + strings.Join(names, ", ")
}

// seesPods returns the names of the webhooks of a configuration of whose rules one matches new pods.
func seesPods(kind string, configuration runtime.Object, o admission.ObjectInterfaces) ([]string, error) {
	if configuration == nil || kind != "MutatingWebhookConfiguration" && kind != "ValidatingWebhookConfiguration" {
		return nil, nil
	}
	versioned, err := admission.ConvertToGVK(configuration, admissionregistrationv1.SchemeGroupVersion.WithKind(kind), o)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, w := range podhooks.WebhooksOf(versioned) {
		if w.SeesNewPods() {
			names = append(names, w.Name)
		}
	}
	return names, nil
}
