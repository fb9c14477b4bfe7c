package projection

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ClaimOrdinal returns which numbered replica of a workload uses the volume claim of that name, although nothing refers to it: one that
// a template of the workload stands for, whoever made it.
func (k Kind) ClaimOrdinal(in Object, claim string) (ordinal int32, ok bool) {
	if k.claims == nil {
		return 0, false
	}
	return NumberedClaim(claim, in.GetName(), k.claims(in))
}

// ClaimTemplates returns the names of the templates by which claims are made for the replicas of a workload.
func (k Kind) ClaimTemplates(in Object) []string {
	if k.claims == nil {
		return nil
	}
	return k.claims(in)
}

// NumberedClaim reads the ordinal off the name of a claim that is, or could be, made by one of the templates of a StatefulSet.
func NumberedClaim(claim, set string, templates []string) (ordinal int32, ok bool) {
	rest, ordinal, ok := CutOrdinal(claim)
	template, ofSet := strings.CutSuffix(rest, "-"+set)
	return ordinal, ok && ofSet && slices.Contains(templates, template)
}

// ClaimName is the name of the claim that a template of a StatefulSet stands for, for a replica.
func ClaimName(template, set string, ordinal int32) string {
	return fmt.Sprintf("%s-%s-%d", template, set, ordinal)
}

// SetsOfClaim returns the names of the StatefulSets that a claim of that name may belong to: TEMPLATE-SET-ORDINAL can be read in several
// ways when there are more dashes.
func SetsOfClaim(claim string) []string {
	rest, _, ok := CutOrdinal(claim)
	if !ok {
		return nil
	}
	var out []string
	for i := 1; i < len(rest)-1; i++ {
		if rest[i] == '-' {
			out = append(out, rest[i+1:])
		}
	}
	return out
}

// OwnsClaims reports whether the owner of a volume claim is one that its cluster knows: the pod or the StatefulSet that it was made for.
// Others are objects of the logical cluster.
func OwnsClaims(ref metav1.OwnerReference) bool {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	return gvk == corev1.SchemeGroupVersion.WithKind("Pod") || gvk == appsv1.SchemeGroupVersion.WithKind("StatefulSet")
}

// CutOrdinal splits a name, such as that of a replica of a StatefulSet, at its last dash if a number follows that is written as controllers
// write it.
func CutOrdinal(name string) (rest string, ordinal int32, ok bool) {
	dash := strings.LastIndexByte(name, '-')
	if dash < 1 {
		return "", 0, false
	}
	number, err := strconv.ParseInt(name[dash+1:], 10, 32)
	if err != nil || number < 0 || strconv.FormatInt(number, 10) != name[dash+1:] {
		return "", 0, false
	}
	return name[:dash], int32(number), true
}

// claimsMadeBy returns the templates of the claims that are made for the replicas of a StatefulSet. They must not be changed.
func claimsMadeBy(in Object) []corev1.PersistentVolumeClaim {
	if set, ok := in.(*appsv1.StatefulSet); ok {
		return set.Spec.VolumeClaimTemplates
	}
	return nil
}

// ClaimOfSet returns the claim that a StatefulSet asks for under a name, whatever a cluster has made of that: nil if none of its templates stands
// for that name. What becomes of it is not in there.
func ClaimOfSet(set *appsv1.StatefulSet, name string) *corev1.PersistentVolumeClaim {
	for i := range set.Spec.VolumeClaimTemplates {
		template := &set.Spec.VolumeClaimTemplates[i]
		if _, made := NumberedClaim(name, set.Name, []string{template.Name}); made {
			return &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: name, Annotations: template.Annotations, Labels: template.Labels},
				Spec:       template.Spec,
			}
		}
	}
	return nil
}

// claimTemplates are the names of a StatefulSet's templates of claims.
func claimTemplates(in *appsv1.StatefulSet) []string {
	out := make([]string, 0, len(in.Spec.VolumeClaimTemplates))
	for i := range in.Spec.VolumeClaimTemplates {
		out = append(out, in.Spec.VolumeClaimTemplates[i].Name)
	}
	return out
}
