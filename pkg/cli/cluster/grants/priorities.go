package grants

import (
	"fmt"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// highestPriority is that which a PriorityClass may have that is not Kubernetes' own.
const highestPriority = 1_000_000_000

// boundKey is the annotation of the role about PriorityClasses with the highest value that they may have.
const boundKey = "manifold.dev/priority-classes-up-to"

// PrioritiesName names what lets PriorityClasses of applications come along. It is apart from what joining applies whole, so that joining again
// keeps it.
func PrioritiesName(logical types.UID) string { return Name(logical) + "-priorities" }

// ParsePriority reads the value of --allow-priority-classes, nil for none.
func ParsePriority(value string) (*int32, error) {
	if value == "" {
		return nil, nil
	}
	upTo, err := strconv.ParseInt(value, 10, 32)
	if err != nil || upTo > highestPriority {
		return nil, fmt.Errorf("--allow-priority-classes %q: write the highest value that they may have, a whole number up to %d", value, highestPriority)
	}
	return ptr.To(int32(upTo)), nil
}

// priorityRights are the rights that PriorityClasses take which come along, beside reading them.
func priorityRights() []rights.Right {
	return []rights.Right{{
		Why: "PriorityClasses that applications bring along", Group: schedulingv1.GroupName, Resources: []string{"priorityclasses"},
		Verbs: []string{"create", "patch", "delete"},
	}}
}

// priorityFence bounds the PriorityClasses that the syncer makes. That they carry its mark is for the fence around all that it writes.
func priorityFence(logical types.UID, upTo int32) *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: PrioritiesName(logical), Labels: Labels()},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				MatchPolicy: ptr.To(admissionregistrationv1.Equivalent), NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{ruleFor([]string{schedulingv1.GroupName}, []string{"priorityclasses"},
					admissionregistrationv1.Create, admissionregistrationv1.Update)},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{isTheSyncer(logical)},
			Validations: []admissionregistrationv1.Validation{
				{
					Expression:        fmt.Sprintf("object.value <= %d", upTo),
					MessageExpression: fmt.Sprintf(`"Manifold may only create PriorityClasses of a value up to %d here, and " + object.metadata.name + " has " + string(object.value)`, upTo),
					Reason:            ptr.To(metav1.StatusReasonForbidden),
				},
				{
					Expression: "!has(object.globalDefault) || !object.globalDefault",
					Message:    "Manifold may not create a PriorityClass with globalDefault: true, which would count for the pods of others",
					Reason:     ptr.To(metav1.StatusReasonForbidden),
				},
			},
		},
	}
}

// priorityClasses is what lets PriorityClasses come along: the fence around them before the rights.
func priorityClasses(logical types.UID, upTo int32) []row {
	meta := metav1.ObjectMeta{Name: PrioritiesName(logical), Labels: Labels()}
	bounded := *meta.DeepCopy()
	bounded.Annotations = map[string]string{boundKey: strconv.Itoa(int(upTo))}
	return []row{
		policy(priorityFence(logical, upTo), "Which PriorityClasses applications may bring along, by --allow-priority-classes."),
		policyBinding(fenceBinding(meta.Name), "Puts that in force."),
		clusterRole(bounded, priorityRights(), "The right to make them, which the policy bounds."),
		clusterRoleBinding(meta, logical),
	}
}

// PriorityClassesIn returns up to which value the role of that name lets PriorityClasses come along, nil if nobody has made that by joining.
func PriorityClassesIn(role *rbacv1.ClusterRole) *int32 {
	upTo, err := ParsePriority(role.Annotations[boundKey])
	if err != nil {
		return nil
	}
	return upTo
}
