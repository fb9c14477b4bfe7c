package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/bearer"
	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

const (
	// defaultLifetime is that of a token. The server renews it after half of that, so it may be down for as long as the other half.
	defaultLifetime = 7 * 24 * time.Hour
	// shortestLifetime is what the API takes at the least.
	shortestLifetime = 10 * time.Minute
	// takenUp bounds how long a token that was replaced is kept for the server to go on with the next one.
	takenUp = 15 * time.Second
)

// bindings are the labels of the Secrets that the tokens of a logical cluster end with.
func bindings(logical types.UID) map[string]string {
	set := madeByManifold()
	set["app.kubernetes.io/instance"] = syncerName(logical)
	return set
}

// checkLifetime refuses what no API server takes.
func checkLifetime(lifetime time.Duration) error {
	if lifetime < shortestLifetime {
		return fmt.Errorf("--token-lifetime must be at least %s, not %s", shortestLifetime, lifetime)
	}
	return nil
}

// issued is a token with what it says of itself.
type issued struct {
	token string
	bearer.Claims
}

// issue makes a Secret, and a token of the syncer's ServiceAccount that ends with it: whoever deletes the Secret revokes the token, and those
// that have followed it.
func (p *physical) issue(ctx context.Context, logical types.UID, lifetime time.Duration, undo *undoStack) (issued, error) {
	core, name := p.client.CoreV1(), syncerName(logical)
	account, err := core.ServiceAccounts(manifoldv1alpha1.SystemNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return issued{}, fmt.Errorf("read ServiceAccount %s/%s: %w", manifoldv1alpha1.SystemNamespace, name, err)
	}
	secrets := core.Secrets(manifoldv1alpha1.SystemNamespace)
	secret, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		GenerateName: name + "-", Labels: bindings(logical),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: account.Name, UID: account.UID}},
	}}, metav1.CreateOptions{FieldManager: joinManager})
	if err != nil {
		return issued{}, fmt.Errorf("make a Secret that a token is bound to: %w", err)
	}
	undo.push("Secret "+manifoldv1alpha1.SystemNamespace+"/"+secret.Name, func(ctx context.Context) error {
		return secrets.Delete(ctx, secret.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(secret.UID)}})
	})
	answer, err := core.ServiceAccounts(manifoldv1alpha1.SystemNamespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: ptr.To(int64(lifetime / time.Second)),
			BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: secret.Name, UID: secret.UID},
		},
	}, metav1.CreateOptions{FieldManager: joinManager})
	if err != nil {
		return issued{}, fmt.Errorf("ask for a token of ServiceAccount %s/%s: %w", manifoldv1alpha1.SystemNamespace, name, err)
	}
	claims, err := bearer.Parse(answer.Status.Token)
	if err == nil && (!claims.Renewable() || claims.Secret != secret.Name) {
		err = errors.New("it does not end with the Secret that it was asked for with")
	}
	if err != nil {
		return issued{}, fmt.Errorf("the cluster's token of ServiceAccount %s/%s cannot be used: %w", manifoldv1alpha1.SystemNamespace, name, err)
	}
	return issued{answer.Status.Token, claims}, nil
}

// capped says that a token does not last as long as was asked for, "" if it does.
func (t issued) capped(asked time.Duration) string {
	given := time.Duration(t.Seconds()) * time.Second
	if given >= asked {
		return ""
	}
	return fmt.Sprintf(", which lasts %s, as long as the cluster allows", duration.HumanDuration(given))
}

// retire makes every token of the syncer worthless but those that end with the Secret named keep. Clusters that joined with an earlier version
// have one that never ends, in a Secret with the name of the ServiceAccount.
func (p *physical) retire(ctx context.Context, logical types.UID, keep string) error {
	secrets := p.client.CoreV1().Secrets(manifoldv1alpha1.SystemNamespace)
	list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(bindings(logical)).String()})
	if err != nil {
		return fmt.Errorf("list what the tokens of earlier are bound to: %w", err)
	}
	names := []string{syncerName(logical)}
	for i := range list.Items {
		if name := list.Items[i].Name; name != keep {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if err := secrets.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete Secret %s/%s, with which a token ends: %w", manifoldv1alpha1.SystemNamespace, name, err)
		}
	}
	return nil
}

// replaceToken stores another token in the credential of a cluster, and leaves the rest of that as it is.
func (l *logical) replaceToken(ctx context.Context, cluster, next string) error {
	secrets, name := l.client.CoreV1().Secrets(manifoldv1alpha1.SystemNamespace), credentialName(cluster)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // the server may renew it at the same moment
		secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(secret.Data[kubeconfigKey]) == 0 {
			return fmt.Errorf("it holds no credential; run \"manifold cluster join %s\"", cluster)
		}
		token, _, err := bearer.Split(secret.Data[kubeconfigKey])
		if err != nil {
			return err
		}
		if secret.Data[kubeconfigKey], err = bearer.Replace(secret.Data[kubeconfigKey], token, next); err != nil {
			return err
		}
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: joinManager})
		return err
	})
	if err != nil {
		return fmt.Errorf("store the token in Secret %s/%s: %w", manifoldv1alpha1.SystemNamespace, name, err)
	}
	return nil
}

// awaitTakenUp waits until the server uses a token, so that none of its requests carries the one that ends. It does not wait for long: who
// rotates tokens has a reason not to.
func (l *logical) awaitTakenUp(ctx context.Context, cluster string, t issued) {
	_ = l.follow(ctx, cluster, takenUp, func(c *manifoldv1alpha1.Cluster) bool {
		return c == nil || bearer.NamesSecret(meta.FindStatusCondition(c.Status.Conditions, manifoldv1alpha1.ClusterCredentialValid), t.Claims)
	})
}

// tokenPieces are the right of the syncer to renew its own token. It is bounded to its ServiceAccount, and so is what the fence lets pass.
func tokenPieces(inSystem metav1.ObjectMeta) (*rbacv1.Role, *rbacv1.RoleBinding) {
	role := &rbacv1.Role{ObjectMeta: inSystem, Rules: policyRules(rights.Renewal(inSystem.Name))}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: inSystem,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: inSystem.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: inSystem.Namespace, Name: inSystem.Name}},
	}
	return role, binding
}
