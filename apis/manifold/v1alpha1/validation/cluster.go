// Package validation refuses objects of Manifold's own kinds that cannot mean anything. Every refusal names the field.
package validation

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/internal/fields"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// ValidateCluster refuses a new cluster that is not valid. The name must be a DNS label, because pins separate names by commas and
// Secrets, Leases and user names carry it as a part of theirs.
func ValidateCluster(cluster *v1alpha1.Cluster) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&cluster.ObjectMeta, false, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	return append(errs, validateClusterSpec(&cluster.Spec, field.NewPath("spec"))...)
}

// ValidateClusterUpdate refuses a change of the metadata or the spec that is not valid.
func ValidateClusterUpdate(cluster, old *v1alpha1.Cluster) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&cluster.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateClusterSpec(&cluster.Spec, field.NewPath("spec"))...)
}

// ValidateClusterStatusUpdate refuses a report that cannot be true, since placement computes with it.
func ValidateClusterStatusUpdate(cluster, old *v1alpha1.Cluster) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&cluster.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path, status := field.NewPath("status"), &cluster.Status
	errs = append(errs, metav1validation.ValidateConditions(status.Conditions, path.Child("conditions"))...)
	errs = append(errs, validateNodeCount(status.Nodes, path.Child("nodes"))...)
	errs = append(errs, validateQuantities(status.Capacity, path.Child("capacity"))...)
	errs = append(errs, validateQuantities(status.Allocatable, path.Child("allocatable"))...)
	return append(errs, validateQuantities(status.Requested, path.Child("requested"))...)
}

func validateClusterSpec(spec *v1alpha1.ClusterSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ref := spec.Connection.SecretRef; ref != nil {
		errs = append(errs, validateSecretReference(ref, path.Child("connection", "secretRef"))...)
	}
	if level := spec.Allows.PodSecurity; level != "" && level != v1alpha1.PodSecurityBaseline && level != v1alpha1.PodSecurityRestricted {
		errs = append(errs, field.NotSupported(path.Child("allows", "podSecurity"), level, []string{v1alpha1.PodSecurityBaseline, v1alpha1.PodSecurityRestricted}))
	}
	errs = append(errs, validateTaints(spec.Taints, path.Child("taints"))...)
	errs = append(errs, validateLimits(spec.Limits, path.Child("limits"))...)
	if spec.Network != "" {
		errs = append(errs, fields.Name(spec.Network, path.Child("network"), validation.IsDNS1123Label)...)
	}
	return append(errs, ValidatePodCIDRs(spec.PodCIDRs, path.Child("podCIDRs"))...)
}

// maxPodCIDRs bounds how many ranges of addresses the pods of a cluster may have.
const maxPodCIDRs = 64

// ValidatePodCIDRs refuses ranges that pods cannot have their addresses from, and a range that overlaps another one.
func ValidatePodCIDRs(cidrs []string, path *field.Path) field.ErrorList {
	if len(cidrs) > maxPodCIDRs {
		return field.ErrorList{field.TooMany(path, len(cidrs), maxPodCIDRs)}
	}
	var errs field.ErrorList
	var seen []netip.Prefix
	for i, text := range cidrs {
		at := path.Index(i)
		prefix, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(at, text, "must be a range of addresses, such as 10.1.0.0/16 or fd00:1::/48"))
			continue
		case prefix != prefix.Masked():
			errs = append(errs, field.Invalid(at, text, "must begin with the first address of the range: "+prefix.Masked().String()))
			continue
		case prefix.Addr().Is4In6() || !prefix.Addr().IsGlobalUnicast() || prefix.Bits() == 0:
			errs = append(errs, field.Invalid(at, text, "must be a range that pods have addresses from"))
			continue
		}
		for _, other := range seen {
			if other.Overlaps(prefix) {
				errs = append(errs, field.Invalid(at, text, "overlaps "+other.String()))
			}
		}
		seen = append(seen, prefix)
	}
	return errs
}

func validateSecretReference(ref *v1alpha1.SecretReference, path *field.Path) field.ErrorList {
	errs := fields.Name(ref.Namespace, path.Child("namespace"), validation.IsDNS1123Label)
	return append(errs, fields.Name(ref.Name, path.Child("name"), validation.IsDNS1123Subdomain)...)
}

func validateTaints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	var errs field.ErrorList
	seen := map[identity]bool{}
	for i, taint := range taints {
		at := path.Index(i)
		errs = append(errs, validateTaint(&taint, at)...)
		id := identity{taint.Key, taint.Effect}
		if seen[id] {
			errs = append(errs, field.Duplicate(at, taint.Key+":"+string(taint.Effect)))
		}
		seen[id] = true
	}
	return errs
}

func validateTaint(taint *corev1.Taint, path *field.Path) field.ErrorList {
	errs := fields.Name(taint.Key, path.Child("key"), validation.IsQualifiedName)
	for _, problem := range validation.IsValidLabelValue(taint.Value) {
		errs = append(errs, field.Invalid(path.Child("value"), taint.Value, problem))
	}
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	switch {
	case taint.Effect == "":
		errs = append(errs, field.Required(path.Child("effect"), ""))
	case !slices.Contains(effects, taint.Effect):
		errs = append(errs, field.NotSupported(path.Child("effect"), taint.Effect, effects))
	}
	return errs
}

func validateLimits(limits corev1.ResourceList, path *field.Path) field.ErrorList {
	errs := validateQuantities(limits, path)
	for _, name := range sortedKeys(limits) {
		errs = append(errs, validateResourceName(name, path.Key(string(name)))...)
	}
	return errs
}

func validateResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := fields.Name(string(name), path, validation.IsQualifiedName)
	if len(errs) > 0 || strings.Contains(string(name), "/") || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
		return errs
	}
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		return nil
	}
	const problem = "must be cpu, memory, ephemeral-storage, pods, hugepages-<size> or a name with a domain"
	return field.ErrorList{field.Invalid(path, name, problem)}
}

func validateQuantities(quantities corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sortedKeys(quantities) {
		quantity := quantities[name]
		if quantity.Cmp(resource.Quantity{}) < 0 {
			errs = append(errs, field.Invalid(path.Key(string(name)), quantity.String(), "must not be negative"))
		}
	}
	return errs
}

func validateNodeCount(nodes v1alpha1.NodeCount, path *field.Path) field.ErrorList {
	errs := apivalidation.ValidateNonnegativeField(int64(nodes.Total), path.Child("total"))
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(nodes.Ready), path.Child("ready"))...)
	if nodes.Ready > nodes.Total {
		errs = append(errs, field.Invalid(path.Child("ready"), nodes.Ready, "must not be more than total"))
	}
	return errs
}
