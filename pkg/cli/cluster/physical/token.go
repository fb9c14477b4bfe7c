package physical

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
	"github.com/manifold-dev/manifold/pkg/clusters/bearer"
)

// Token is a token with what it says of itself.
type Token struct {
	Value string
	bearer.Claims
}

// Issue makes a Secret, and a token of the syncer's ServiceAccount that ends with it: whoever deletes the Secret revokes the token, and those
// that have followed it.
func (c *Cluster) Issue(ctx context.Context, logical types.UID, lifetime time.Duration, undo *Undo) (Token, error) {
	core, name := c.client.CoreV1(), grants.Name(logical)
	account, err := core.ServiceAccounts(manifoldv1alpha1.SystemNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Token{}, fmt.Errorf("read ServiceAccount %s/%s: %w", manifoldv1alpha1.SystemNamespace, name, err)
	}
	secrets := core.Secrets(manifoldv1alpha1.SystemNamespace)
	secret, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		GenerateName: name + "-", Labels: grants.TokenLabels(logical),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: account.Name, UID: account.UID}},
	}}, metav1.CreateOptions{FieldManager: grants.FieldManager})
	if err != nil {
		return Token{}, fmt.Errorf("make a Secret that a token is bound to: %w", err)
	}
	undo.Push("Secret "+manifoldv1alpha1.SystemNamespace+"/"+secret.Name, func(ctx context.Context) error {
		return secrets.Delete(ctx, secret.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(secret.UID)}})
	})
	answer, err := core.ServiceAccounts(manifoldv1alpha1.SystemNamespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: ptr.To(int64(lifetime / time.Second)),
			BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: secret.Name, UID: secret.UID},
		},
	}, metav1.CreateOptions{FieldManager: grants.FieldManager})
	if err != nil {
		return Token{}, fmt.Errorf("ask for a token of ServiceAccount %s/%s: %w", manifoldv1alpha1.SystemNamespace, name, err)
	}
	claims, err := bearer.Parse(answer.Status.Token)
	if err == nil && (!claims.Renewable() || claims.Secret != secret.Name) {
		err = errors.New("it does not end with the Secret that it was asked for with")
	}
	if err != nil {
		return Token{}, fmt.Errorf("the cluster's token of ServiceAccount %s/%s cannot be used: %w", manifoldv1alpha1.SystemNamespace, name, err)
	}
	return Token{answer.Status.Token, claims}, nil
}

// Capped says that a token does not last as long as was asked for, "" if it does.
func (t Token) Capped(asked time.Duration) string {
	given := time.Duration(t.Seconds()) * time.Second
	if given >= asked {
		return ""
	}
	return fmt.Sprintf(", which lasts %s, as long as the cluster allows", duration.HumanDuration(given))
}

// Bound returns the names of the Secrets that tokens of the syncer end with, but for one. Clusters that joined with an earlier version have a
// token that never ends, in a Secret with the name of the ServiceAccount.
func (c *Cluster) Bound(ctx context.Context, logical types.UID, but string) ([]string, error) {
	list, err := c.client.CoreV1().Secrets(manifoldv1alpha1.SystemNamespace).List(ctx,
		metav1.ListOptions{LabelSelector: labels.SelectorFromSet(grants.TokenLabels(logical)).String()})
	if err != nil {
		return nil, fmt.Errorf("list what the tokens of earlier are bound to: %w", err)
	}
	names := []string{grants.Name(logical)}
	for i := range list.Items {
		if name := list.Items[i].Name; name != but {
			names = append(names, name)
		}
	}
	return names, nil
}

// Retire deletes Secrets, and makes the tokens worthless that end with them.
func (c *Cluster) Retire(ctx context.Context, names []string) error {
	for _, name := range names {
		err := c.client.CoreV1().Secrets(manifoldv1alpha1.SystemNamespace).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete Secret %s/%s, with which a token ends: %w", manifoldv1alpha1.SystemNamespace, name, err)
		}
	}
	return nil
}

// retireAll makes every token of the syncer worthless.
func (c *Cluster) retireAll(ctx context.Context, logical types.UID) error {
	names, err := c.Bound(ctx, logical, "")
	if err != nil {
		return err
	}
	return c.Retire(ctx, names)
}

// Disown removes the ServiceAccount of the syncer, and with it every token, whatever that is bound to. Its rights stay for the next one of that
// name, which nobody but an admin of the cluster can make.
func (c *Cluster) Disown(ctx context.Context, logical types.UID) error {
	name := grants.Name(logical)
	err := c.client.CoreV1().ServiceAccounts(manifoldv1alpha1.SystemNamespace).Delete(ctx, name,
		metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete ServiceAccount %s/%s: %w", manifoldv1alpha1.SystemNamespace, name, err)
	}
	return c.retireAll(ctx, logical)
}
