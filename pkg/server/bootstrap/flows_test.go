package bootstrap

import (
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

func TestSyncersHaveFlowsOfTheirOwn(t *testing.T) {
	exempt := syncerFlowSchema()
	exempt.Spec.PriorityLevelConfiguration.Name, exempt.Spec.DistinguisherMethod = flowcontrolv1.PriorityLevelConfigurationNameExempt, nil
	edited := syncerFlowSchema()
	edited.Spec.PriorityLevelConfiguration.Name = "workload-high"
	for name, test := range map[string]struct {
		before *flowcontrolv1.FlowSchema
		want   string
	}{
		"on the first start":                     {nil, syncerFlows},
		"after an earlier version exempted them": {exempt, syncerFlows},
		"unless an admin has chosen otherwise":   {edited, "workload-high"},
	} {
		t.Run(name, func(t *testing.T) {
			schemas := fake.NewClientset().FlowcontrolV1().FlowSchemas()
			if test.before != nil {
				if _, err := schemas.Create(t.Context(), test.before, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := ensureSyncerFlowSchema(t.Context(), schemas); err != nil {
				t.Fatal(err)
			}
			got, err := schemas.Get(t.Context(), syncerFlows, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if level := got.Spec.PriorityLevelConfiguration.Name; level != test.want {
				t.Errorf("their requests are of level %q, want %q", level, test.want)
			}
			if method := got.Spec.DistinguisherMethod; method == nil || method.Type != flowcontrolv1.FlowDistinguisherMethodByUserType {
				t.Errorf("clusters are told apart by %+v, want by user", method)
			}
		})
	}
	if level := syncerPriorityLevel().Spec; level.Type != flowcontrolv1.PriorityLevelEnablementLimited || ptr.Deref(level.Limited.NominalConcurrencyShares, 0) == 0 {
		t.Errorf("level %+v, want a limited one with shares", level)
	}
}
