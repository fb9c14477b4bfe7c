package cluster

import (
	"context"
	"fmt"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// highestPriority is that which a PriorityClass may have that is not Kubernetes' own.
const highestPriority = 1_000_000_000

// boundKey is the annotation of the role about PriorityClasses with the highest value that they may have.
const boundKey = "manifold.dev/priority-classes-up-to"

// prioritiesName names what lets PriorityClasses of applications come along. It is apart from what joining applies whole, so that joining again
// keeps it.
func prioritiesName(logical types.UID) string { return syncerName(logical) + "-priorities" }

// parsePriority reads the value of --allow-priority-classes, nil for none.
func parsePriority(value string) (*int32, error) {
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
func priorityRights() []Right {
	return []Right{{
		Why: "PriorityClasses that applications bring along", Group: schedulingv1.GroupName, Resources: []string{"priorityclasses"},
		Verbs: []string{"create", "patch", "delete"},
	}}
}

// priorityFence bounds the PriorityClasses that the syncer makes. That they carry its mark is for the fence around all that it writes.
func priorityFence(logical types.UID, upTo int32) *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: prioritiesName(logical), Labels: madeByManifold()},
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
					MessageExpression: fmt.Sprintf(`"Manifold makes no PriorityClass of a value above %d here, and " + object.metadata.name + " has " + string(object.value)`, upTo),
					Reason:            ptr.To(metav1.StatusReasonForbidden),
				},
				{
					Expression: "!has(object.globalDefault) || !object.globalDefault",
					Message:    "Manifold makes no PriorityClass for pods that name none",
					Reason:     ptr.To(metav1.StatusReasonForbidden),
				},
			},
		},
	}
}

// priorityPieces are what lets PriorityClasses come along: the fence around them before the rights.
func priorityPieces(logical types.UID, upTo int32) ([]piece, error) {
	meta := metav1.ObjectMeta{Name: prioritiesName(logical), Labels: madeByManifold()}
	bounded := *meta.DeepCopy()
	bounded.Annotations = map[string]string{boundKey: strconv.Itoa(int(upTo))}
	return assemble(meta.Name, []row{
		{
			version: admissionregistrationv1.SchemeGroupVersion, kind: "ValidatingAdmissionPolicy", resource: "validatingadmissionpolicies",
			object: priorityFence(logical, upTo), why: "Which PriorityClasses applications may bring along, by --allow-priority-classes.",
		},
		{
			version: admissionregistrationv1.SchemeGroupVersion, kind: "ValidatingAdmissionPolicyBinding", resource: "validatingadmissionpolicybindings",
			object: fenceBinding(meta.Name), why: "Puts that in force.",
		},
		{
			version: rbacv1.SchemeGroupVersion, kind: "ClusterRole", resource: "clusterroles", rights: priorityRights(),
			object: &rbacv1.ClusterRole{ObjectMeta: bounded, Rules: policyRules(priorityRights())}, why: "The right to make them, which the policy bounds.",
		},
		{
			version: rbacv1.SchemeGroupVersion, kind: "ClusterRoleBinding", resource: "clusterrolebindings",
			object: &rbacv1.ClusterRoleBinding{
				ObjectMeta: meta, Subjects: syncerAlone(logical),
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			},
			why: "Gives it that.",
		},
	})
}

// allowPriorities lets PriorityClasses come along up to the value that is asked for, or else up to that of before.
func (p *physical) allowPriorities(ctx context.Context, logical types.UID, undo *undoStack) error {
	if p.priorities == nil {
		var err error
		if p.priorities, err = p.allowedPriorities(ctx, logical); err != nil {
			return fmt.Errorf("read ClusterRole %s in the cluster: %w", prioritiesName(logical), err)
		}
	}
	if p.priorities == nil {
		return nil
	}
	all, err := priorityPieces(logical, *p.priorities)
	if err != nil {
		return err
	}
	for _, piece := range all {
		if err := p.apply(ctx, piece, undo); err != nil {
			return fmt.Errorf("apply %s in the cluster: %w", piece, err)
		}
	}
	return nil
}

// allowedPriorities returns up to which value PriorityClasses may come along, nil if none may.
func (p *physical) allowedPriorities(ctx context.Context, logical types.UID) (*int32, error) {
	role, err := p.client.RbacV1().ClusterRoles().Get(ctx, prioritiesName(logical), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	upTo, err := parsePriority(role.Annotations[boundKey])
	if err != nil || upTo == nil {
		return nil, nil // nobody has made that by joining
	}
	return upTo, nil
}
