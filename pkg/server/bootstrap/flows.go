package bootstrap

import (
	"context"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	flowcontrolclient "k8s.io/client-go/kubernetes/typed/flowcontrol/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// syncerFlows names what says how the requests of syncers are queued.
const syncerFlows = "manifold-syncers"

const (
	// syncerShares is the syncers' part of the server, of which all stock levels together have 245, and what is idle may be borrowed both ways.
	syncerShares = 100
	// A syncer writes 14 objects at once at the most, for the sake of which a cluster has several queues. Its storm fills these, and of 128
	// queues another cluster's hand has some that are free.
	syncerQueues, syncerHand, syncerQueueLength = 128, 6, 100
)

// syncerPriorityLevel keeps the reports of syncers out of the queues of users, since what runs must be shown also when users ask for much,
// and the storm of one cluster out of those of users and of other clusters.
func syncerPriorityLevel() *flowcontrolv1.PriorityLevelConfiguration {
	return &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: syncerFlows},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: ptr.To[int32](syncerShares),
				LendablePercent:          ptr.To[int32](50),
				LimitResponse: flowcontrolv1.LimitResponse{
					Type: flowcontrolv1.LimitResponseTypeQueue,
					Queuing: &flowcontrolv1.QueuingConfiguration{
						Queues: syncerQueues, HandSize: syncerHand, QueueLengthLimit: syncerQueueLength,
					},
				},
			},
		},
	}
}

// syncerFlowSchema has each syncer, and so each cluster, be a flow of its own.
func syncerFlowSchema() *flowcontrolv1.FlowSchema {
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: syncerFlows},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: syncerFlows},
			MatchingPrecedence:         100,
			DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{
					Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: v1alpha1.SyncersGroup},
				}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, Namespaces: []string{"*"}, ClusterScope: true,
				}},
			}},
		},
	}
}

// ensureSyncerFlowSchema makes the FlowSchema. One that an earlier version has made exempts syncers, and is brought up to date; what an
// admin has written otherwise stays.
func ensureSyncerFlowSchema(ctx context.Context, schemas flowcontrolclient.FlowSchemaInterface) error {
	found, err := schemas.Get(ctx, syncerFlows, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return ensure(ctx, schemas, syncerFlowSchema())
	case err != nil:
		return err
	case found.Spec.PriorityLevelConfiguration.Name != flowcontrolv1.PriorityLevelConfigurationNameExempt:
		return nil
	}
	found.Spec = syncerFlowSchema().Spec
	_, err = schemas.Update(ctx, found, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	return err
}
