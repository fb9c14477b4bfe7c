package physical

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
)

// reviewsAtOnce bounds the access reviews in flight, so that asking for some eighty rights is quick over a slow line without
// crowding out others.
const reviewsAtOnce = 16

// Check refuses a cluster that lacks what joining it takes: a kind, or a right of the credential.
func (c *Cluster) Check(ctx context.Context, logical types.UID, wanted grants.Allowances) error {
	if err := c.checkKinds(); err != nil {
		return err
	}
	return c.checkRights(ctx, logical, wanted)
}

// checkRights asks whether the credential may do what joining needs. The error names exactly what is missing.
func (c *Cluster) checkRights(ctx context.Context, logical types.UID, wanted grants.Allowances) error {
	needed := grants.JoinRights()
	// RBAC lets a credential hand on what it has, or anything if it may "escalate" and "bind".
	lacksGrant, err := missingRights(ctx, c.client, grants.Questions(grants.HandOnRights()...))
	if err != nil {
		return err
	}
	if len(lacksGrant) > 0 {
		needed = append(needed, grants.Given(logical, wanted)...)
	}
	missing, err := missingRights(ctx, c.client, grants.Questions(needed...))
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("the credential in %s lacks these rights; use a cluster admin's:\n  %s",
		c, strings.Join(grants.Summarise(missing), "\n  "))
}

// missingRights returns the questions that the cluster answers with no, in their order.
func missingRights(ctx context.Context, client kubernetes.Interface, asked []grants.Question) ([]grants.Question, error) {
	refused := make([]bool, len(asked))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for i, q := range asked {
		group.Go(func() error {
			review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, q.Review(), metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("ask for the right to %s: %w", q, err)
			}
			refused[i] = !review.Status.Allowed
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var missing []grants.Question
	for i, q := range asked {
		if refused[i] {
			missing = append(missing, q)
		}
	}
	return missing, nil
}

// checkKinds makes sure that the cluster can keep what the syncer writes within bounds, which takes a kind that Kubernetes has
// since v1.30.
func (c *Cluster) checkKinds() error {
	served, err := c.client.Discovery().ServerResourcesForGroupVersion(admissionregistrationv1.SchemeGroupVersion.String())
	if err != nil {
		return fmt.Errorf("ask %s which kinds it serves: %w", c.Host(), err)
	}
	if slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == "ValidatingAdmissionPolicy" }) {
		return nil
	}
	return fmt.Errorf("%s runs Kubernetes %s, which lacks ValidatingAdmissionPolicy; Manifold needs v1.30 or newer", c.Host(), c.Version)
}
