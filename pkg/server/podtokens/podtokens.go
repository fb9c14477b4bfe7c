// Package podtokens lets pods log in to the logical cluster with tokens of the cluster that they run in.
//
// A cluster makes such a token for one of its pods, as it makes any other, but for the audience of the logical cluster. The cluster is asked
// whether a token is its own, and what it answers is believed of one thing alone: which of its pods has the token. Everything else is looked up in the
// logical cluster, at each request: which ServiceAccount the pod runs as, that the pod is there, and that it is to call this API.
package podtokens

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/manifold-dev/manifold/pkg/clusters/bearer"
	"github.com/manifold-dev/manifold/pkg/projection"
)

const (
	// remembered is how long the answer of a cluster about a token is good for, whatever it was. What happens above counts at once.
	remembered = 10 * time.Second
	// patience is how long a cluster may take to answer.
	patience = 5 * time.Second
	// questions is how many one cluster is asked at a time, so that nobody has it, or a silent one, keep us busy.
	questions = 32
)

// LogicalCluster is what is known above. All of it is read from caches.
type LogicalCluster interface {
	// Identity returns the identity of the logical cluster.
	Identity() (string, error)
	// Pod returns a pod as it is shown, nil if there is none.
	Pod(namespace, name string) *corev1.Pod
	// Account returns a ServiceAccount, nil if there is none.
	Account(namespace, name string) *corev1.ServiceAccount
	// CallsAPI reports whether a pod that is shown calls the logical cluster.
	CallsAPI(pod *corev1.Pod) bool
}

// Reviewer asks a cluster about a token. The error says why it cannot be asked.
type Reviewer func(ctx context.Context, cluster string, review *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error)

// Authenticator authenticates requests of pods in clusters.
type Authenticator struct {
	above    LogicalCluster
	answered authenticator.Token
	bearer   authenticator.Request
}

// New returns an Authenticator. The API audiences are those of the server.
func New(above LogicalCluster, review Reviewer, audiences authenticator.Audiences) *Authenticator {
	a := &Authenticator{above: above}
	a.answered = cache.New(newAsker(review), false, remembered, remembered)
	a.bearer = group.NewAuthenticatedGroupAdder(bearertoken.New(authenticator.WrapAudienceAgnosticToken(audiences, a)))
	return a
}

// Before returns what authenticates requests of pods, and leaves all others to next. What carries a token for a logical cluster is never left to it.
func (a *Authenticator) Before(next authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		if scheme, token, ok := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " "); ok && strings.EqualFold(scheme, "bearer") {
			if token, _, _ := strings.Cut(token, " "); forLogicalCluster(token) {
				return a.bearer.AuthenticateRequest(r)
			}
		}
		return next.AuthenticateRequest(r)
	})
}

// forLogicalCluster reports whether a token says that it is for a logical cluster, whichever.
func forLogicalCluster(token string) bool {
	return slices.ContainsFunc(bearer.Audiences(token), func(audience string) bool {
		_, ok := projection.TargetOf(audience)
		return ok
	})
}

// AuthenticateToken implements authenticator.Token. The error is for the log: who has a wrong token is only told that it is wrong.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	target, err := a.target(token)
	if err != nil {
		return nil, false, err
	}
	claims, err := bearer.Parse(token)
	if err != nil {
		return nil, false, fmt.Errorf("token of a pod in cluster %q: %w", target.Cluster, err)
	}
	// What it claims is looked at first, so that nobody who knows no pod can have clusters be asked.
	claimed := holder{claims.Namespace, claims.Account, claims.Pod, claims.PodUID}
	info, err := a.account(claimed, target.Cluster)
	if err != nil {
		return nil, false, fmt.Errorf("token of a pod in cluster %q: %w", target.Cluster, err)
	}
	answer, ok, err := a.answered.AuthenticateToken(ctx, token)
	if err != nil {
		return nil, false, fmt.Errorf("token of %s: %w", claimed, err)
	}
	if !ok {
		return nil, false, fmt.Errorf("token of %s: cluster %q says that it is not its own, or is over", claimed, target.Cluster)
	}
	if found, err := holderOf(answer.User); err != nil || found != claimed {
		return nil, false, fmt.Errorf("token of %s: cluster %q says that it is somebody else's", claimed, target.Cluster)
	}
	return &authenticator.Response{User: info.UserInfo()}, true, nil
}

// target returns what a token is for: this logical cluster, by way of one cluster, and nothing else.
func (a *Authenticator) target(token string) (projection.Target, error) {
	audiences := bearer.Audiences(token)
	if len(audiences) != 1 {
		return projection.Target{}, errors.New("token of a pod: it has several audiences")
	}
	target, ok := projection.TargetOf(audiences[0])
	identity, err := a.above.Identity()
	if err != nil {
		return projection.Target{}, fmt.Errorf("token of a pod: the identity of the logical cluster is not known yet: %w", err)
	}
	if !ok || target.Cluster == "" || identity == "" || target.LogicalCluster != identity {
		return projection.Target{}, errors.New("token of a pod: it is for another logical cluster")
	}
	return target, nil
}

// holder is who has a token: a pod, as a ServiceAccount.
type holder struct {
	namespace, account, pod string
	uid                     types.UID
}

// String names it for people.
func (h holder) String() string { return fmt.Sprintf("pod %s/%s", h.namespace, h.pod) }

// account returns the ServiceAccount of the logical cluster that a pod in a cluster acts as, and why it acts as none.
func (a *Authenticator) account(h holder, cluster string) (*serviceaccount.ServiceAccountInfo, error) {
	if h.pod == "" || h.uid == "" {
		return nil, errors.New("it does not end with a pod")
	}
	if reason, refused := projection.NamespaceRefusal(h.namespace); refused {
		return nil, fmt.Errorf("namespace %q: %s", h.namespace, reason)
	}
	pod := a.above.Pod(h.namespace, h.pod)
	switch {
	case pod == nil || projection.ClusterOf(pod) != cluster || projection.UIDBelow(pod) != h.uid:
		return nil, fmt.Errorf("the logical cluster shows no %s with UID %s there", h, h.uid)
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return nil, fmt.Errorf("%s has ended", h)
	case projection.AccountOf(&pod.Spec) != h.account:
		return nil, fmt.Errorf("%s does not run as ServiceAccount %q", h, h.account)
	case !a.above.CallsAPI(pod):
		return nil, fmt.Errorf("%s is not to call the logical cluster: nothing gives its ServiceAccount %q rights, or its template says so", h, h.account)
	}
	account := a.above.Account(h.namespace, h.account)
	if account == nil {
		return nil, fmt.Errorf("there is no ServiceAccount %s/%s", h.namespace, h.account)
	}
	return &serviceaccount.ServiceAccountInfo{
		Name: account.Name, Namespace: account.Namespace, UID: string(account.UID), PodName: h.pod, PodUID: string(h.uid),
	}, nil
}

// holderOf reads who has a token from what a cluster says of it, groups and all else aside.
func holderOf(said user.Info) (holder, error) {
	namespace, account, err := serviceaccount.SplitUsername(said.GetName())
	if err != nil {
		return holder{}, err
	}
	names, uids := said.GetExtra()[serviceaccount.PodNameKey], said.GetExtra()[serviceaccount.PodUIDKey]
	if len(names) != 1 || len(uids) != 1 {
		return holder{}, errors.New("it does not end with a pod")
	}
	return holder{namespace, account, names[0], types.UID(uids[0])}, nil
}
