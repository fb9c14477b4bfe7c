package workloads

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/warning"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// ResourceClaims and their templates ask for devices of a cluster, by classes of its own and by an API that not every cluster serves. So they are not
// sent there, and pods that name one wait for somebody to make it.

// devicesOf are the ResourceClaims and ResourceClaimTemplates that the pods of a workload name, each once.
func devicesOf(w placement.Workload) []string {
	var out []string
	for _, template := range append([]*corev1.PodTemplateSpec{w.Template}, w.Beside...) {
		if template == nil {
			continue
		}
		for _, claim := range template.Spec.ResourceClaims {
			switch {
			case claim.ResourceClaimName != nil:
				out = append(out, fmt.Sprintf("ResourceClaim %q", *claim.ResourceClaimName))
			case claim.ResourceClaimTemplateName != nil:
				out = append(out, fmt.Sprintf("ResourceClaimTemplate %q", *claim.ResourceClaimTemplateName))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// warnOfDevices warns whoever has the pods of a workload name such objects. What the old one named already is known.
func (s placedStrategy) warnOfDevices(ctx context.Context, w placement.Workload, old runtime.Object) {
	names := devicesOf(w)
	if len(names) == 0 {
		return
	}
	if old != nil {
		if before, err := s.reader.workload(old); err == nil && slices.Equal(devicesOf(before), names) {
			return
		}
	}
	warning.AddWarning(ctx, "", fmt.Sprintf("%s %q: its pods get devices by %s, and no such object is sent to clusters: make it in namespace %q of each cluster that is to run them",
		w.GVK.Kind, w.Name, strings.Join(names, ", "), w.Namespace))
}
