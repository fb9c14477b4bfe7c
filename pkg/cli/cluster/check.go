package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// reviewsAtOnce bounds the access reviews in flight, so that asking for some eighty rights is quick over a slow line without
// crowding out others.
const reviewsAtOnce = 16

// checkRights asks whether the credential may do what joining needs. The error names exactly what is missing.
func (p *physical) checkRights(ctx context.Context) error {
	needed := joinRights()
	// RBAC lets a credential hand on what it has, or anything if it may "escalate" and "bind".
	lacksGrant, err := missingRights(ctx, p.client, questions(grantRights()...))
	if err != nil {
		return err
	}
	if len(lacksGrant) > 0 {
		needed = slices.Concat(needed, SyncerRights(), kindRights(p.kinds))
		if p.priorities != nil {
			needed = append(needed, priorityRights()...)
		}
		if p.volumes {
			needed = append(needed, rights.Volumes()...)
		}
		if p.logical != "" {
			needed = slices.Concat(needed, ownRights(p.logical), rights.Secrets(), tellingRights(p.logical))
		}
	}
	missing, err := missingRights(ctx, p.client, questions(needed...))
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("the credential in %s lacks these rights; use a cluster admin's:\n  %s",
		p.access, strings.Join(summarise(missing), "\n  "))
}

// missingRights returns the questions that the cluster answers with no, in their order.
func missingRights(ctx context.Context, client kubernetes.Interface, asked []question) ([]question, error) {
	refused := make([]bool, len(asked))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for i, q := range asked {
		group.Go(func() error {
			review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, q.review(), metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("ask for the right to %s %s: %w", q.verb, q.target(), err)
			}
			refused[i] = !review.Status.Allowed
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var missing []question
	for i, q := range asked {
		if refused[i] {
			missing = append(missing, q)
		}
	}
	return missing, nil
}

// checkKinds makes sure that the cluster can keep what the syncer writes within bounds, which takes a kind that Kubernetes has
// since v1.30.
func (p *physical) checkKinds(client discovery.DiscoveryInterface) error {
	served, err := client.ServerResourcesForGroupVersion(admissionregistrationv1.SchemeGroupVersion.String())
	if err != nil {
		return fmt.Errorf("ask %s which kinds it serves: %w", p.access.rest.Host, err)
	}
	if slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == "ValidatingAdmissionPolicy" }) {
		return nil
	}
	return fmt.Errorf("%s runs Kubernetes %s, which lacks ValidatingAdmissionPolicy; Manifold needs v1.30 or newer",
		p.access.rest.Host, p.version)
}
