package podtokens

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/manifold-dev/manifold/pkg/clusters/bearer"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// asker asks the cluster that a token names as the one that has made it, and no other.
type asker struct {
	review Reviewer

	mu sync.Mutex
	// busy holds one for each question that a cluster is asked.
	busy map[string]chan struct{}
}

func newAsker(review Reviewer) *asker {
	return &asker{review: review, busy: map[string]chan struct{}{}}
}

// AuthenticateToken implements authenticator.Token. It returns what the cluster says, which is to be believed no further than it can be checked.
func (a *asker) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	audiences := bearer.Audiences(token)
	if len(audiences) != 1 {
		return nil, false, errors.New("it has several audiences")
	}
	target, ok := projection.TargetOf(audiences[0])
	if !ok {
		return nil, false, errors.New("it is for another logical cluster")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	done, err := a.begin(ctx, target.Cluster)
	if err != nil {
		return nil, false, fmt.Errorf("ask cluster %q about it: %w", target.Cluster, err)
	}
	defer done()
	answer, err := a.review(ctx, target.Cluster, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences},
	})
	if err != nil {
		return nil, false, fmt.Errorf("ask cluster %q about it: %w", target.Cluster, err)
	}
	// One that does not repeat the audience has not looked at it.
	if !answer.Status.Authenticated || !slices.Equal(answer.Status.Audiences, audiences) {
		return nil, false, nil
	}
	said := &user.DefaultInfo{Name: answer.Status.User.Username, Extra: map[string][]string{}}
	for key, values := range answer.Status.User.Extra {
		said.Extra[key] = values
	}
	return &authenticator.Response{User: said}, true, nil
}

// begin waits until a cluster may be asked one more question, and returns what is to be called when it is answered.
func (a *asker) begin(ctx context.Context, cluster string) (done func(), err error) {
	a.mu.Lock()
	busy := a.busy[cluster]
	if busy == nil {
		busy = make(chan struct{}, questions)
		a.busy[cluster] = busy
	}
	a.mu.Unlock()
	select {
	case busy <- struct{}{}:
		return func() { <-busy }, nil
	case <-ctx.Done():
		return nil, errors.New("it has not answered many other questions yet")
	}
}
