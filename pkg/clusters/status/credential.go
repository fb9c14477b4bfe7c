package status

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/clusters/bearer"
)

// Reasons of the CredentialValid condition, beside those of a credential that cannot be used at all.
const (
	reasonRenewed    = "RenewsItself"
	reasonNotRenewed = "NotRenewed"
	reasonExpiring   = "RenewalFails"
	reasonExpired    = "Expired"
	reasonRejected   = "Rejected"
)

// longestWords bounds what a cluster says in a condition.
const longestWords = 300

// Credential returns the CredentialValid condition of a token, which the cluster may have rejected, and which could not be renewed when that was tried last if
// renewal is not nil.
func Credential(cluster, token string, rejected bool, renewal error, now time.Time) *metav1.Condition {
	claims, err := bearer.Parse(token)
	rotate := fmt.Sprintf("run \"manifold cluster rotate %s --cluster-kubeconfig FILE\"", cluster)
	no := func(reason, message string) *metav1.Condition {
		return &metav1.Condition{Type: v1alpha1.ClusterCredentialValid, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	yes := func(reason, message string) *metav1.Condition {
		return &metav1.Condition{Type: v1alpha1.ClusterCredentialValid, Status: metav1.ConditionTrue, Reason: reason, Message: message}
	}
	switch {
	case err == nil && claims.Expired(now):
		return no(reasonExpired, "the token has expired; "+rotate)
	case rejected:
		return no(reasonRejected, fmt.Sprintf("the cluster does not accept the credential: it has been revoked, or its ServiceAccount is gone; "+
			"run \"manifold cluster join %s --cluster-kubeconfig FILE\"", cluster))
	case token == "":
		return yes(reasonNotRenewed, "the credential is a client certificate, which is not renewed")
	case err != nil:
		return yes(reasonNotRenewed, "the token does not belong to a ServiceAccount, so it is not renewed")
	case !claims.Ends():
		return yes(reasonNotRenewed, "the token never expires, like those of earlier versions; to get one that is renewed automatically, "+rotate)
	case !claims.Renewable():
		return yes(reasonNotRenewed, fmt.Sprintf("the token expires at %s, and is not renewed since it is not bound to a Secret; %s",
			claims.Expires.UTC().Format(time.RFC3339), rotate))
	case renewal != nil && claims.Late(now):
		return no(reasonExpiring, fmt.Sprintf("the token expires at %s and cannot be renewed: %s; %s",
			claims.Expires.UTC().Format(time.RFC3339), text.Line(renewal.Error(), longestWords), rotate))
	}
	return yes(reasonRenewed, "the token is renewed automatically; "+claims.Ending())
}
