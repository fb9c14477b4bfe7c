package target

import (
	"strings"

	"k8s.io/client-go/kubernetes/scheme"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// IsCustom reports whether a group of kinds is neither Kubernetes' nor Manifold's.
func IsCustom(group string) bool {
	return !scheme.Scheme.IsGroupRegistered(group) && !manifoldv1alpha1.IsOwnGroup(group) && strings.Contains(group, ".")
}
