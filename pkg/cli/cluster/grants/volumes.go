package grants

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// VolumesName names what lets PersistentVolumes of the logical cluster go along with their claims. It is apart from what joining applies whole,
// so that it can be taken back.
func VolumesName(logical types.UID) string { return Name(logical) + "-volumes" }

// volumeFence bounds the PersistentVolumes that the syncer makes: each is for one claim, in a namespace that is not somebody else's. It is
// evaluated for each namespace that does not carry the mark, as its parameter, since a volume is in none itself. That they carry the mark
// is for the fence around all that the syncer writes.
func volumeFence(logical types.UID) *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: VolumesName(logical), Labels: Labels()},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			ParamKind:     &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "Namespace"},
			MatchConstraints: &admissionregistrationv1.MatchResources{
				MatchPolicy: ptr.To(admissionregistrationv1.Equivalent), NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{ruleFor([]string{""}, []string{"persistentvolumes"},
					admissionregistrationv1.Create, admissionregistrationv1.Update)},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{isTheSyncer(logical)},
			Variables: []admissionregistrationv1.Variable{
				{Name: "isFor", Expression: `// The namespace of the claim that the volume is for.
has(object.spec.claimRef) && has(object.spec.claimRef.name) && has(object.spec.claimRef.namespace) ? object.spec.claimRef.namespace : ""`},
				{Name: "wasFor", Expression: `oldObject != null && has(oldObject.spec.claimRef) && has(oldObject.spec.claimRef.name) && has(oldObject.spec.claimRef.namespace) ?
oldObject.spec.claimRef.namespace + "/" + oldObject.spec.claimRef.name : ""`},
			},
			Validations: []admissionregistrationv1.Validation{
				{
					Expression: `// A volume that is for nobody would be bound to whoever asks for one.
variables.isFor != ""`,
					MessageExpression: `"Manifold may only create PersistentVolumes here that name their claim in spec.claimRef, and " + object.metadata.name + " does not"`,
					Reason:            ptr.To(metav1.StatusReasonForbidden),
				},
				{
					Expression: expressionsOf(logical)(`// The parameter is a namespace of somebody else's, each in its turn. The claim of a volume that is there is not asked about
// again: the mark may have been taken off its namespace.
request.operation != "CREATE" ||
!(variables.isFor in PROTECTED) && (variables.isFor != params.metadata.name || variables.isFor in SHARED)`),
					MessageExpression: `"Manifold may not create a PersistentVolume here for a claim in namespace " + variables.isFor + ", which is not its own"`,
					Reason:            ptr.To(metav1.StatusReasonForbidden),
				},
				{
					Expression: `// It stays with the claim that it was made for.
request.operation != "UPDATE" || variables.isFor == "" || variables.wasFor == variables.isFor + "/" + object.spec.claimRef.name`,
					MessageExpression: `"Manifold may not reserve PersistentVolume " + object.metadata.name + " for another claim than before"`,
					Reason:            ptr.To(metav1.StatusReasonForbidden),
				},
			},
		},
	}
}

// volumeFenceBinding has that look at the namespaces that are not of the logical cluster.
func volumeFenceBinding(logical types.UID) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	binding := fenceBinding(VolumesName(logical))
	binding.Spec.ParamRef = &admissionregistrationv1.ParamRef{
		Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: manifoldv1alpha1.LabelLogicalCluster, Operator: metav1.LabelSelectorOpNotIn, Values: []string{string(logical)},
		}}},
		// There is always one, such as kube-system.
		ParameterNotFoundAction: ptr.To(admissionregistrationv1.DenyAction),
	}
	return binding
}

// ForVolumes returns what lets PersistentVolumes go along.
func ForVolumes(logical types.UID) ([]Piece, error) { return assemble(volumes(logical)...) }

// volumes has the fence around them before the rights.
func volumes(logical types.UID) []row {
	meta := metav1.ObjectMeta{Name: VolumesName(logical), Labels: Labels()}
	return []row{
		policy(volumeFence(logical), "For which claims PersistentVolumes of the logical cluster may be made, by --allow-volumes."),
		policyBinding(volumeFenceBinding(logical), "Puts that in force, for each namespace that is not Manifold's."),
		clusterRole(meta, rights.Volumes(), "The right to make them, which the policy bounds."),
		clusterRoleBinding(meta, logical),
	}
}
