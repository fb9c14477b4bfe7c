package physical

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
)

const (
	logicalUID = "0a1b2c3d-0000"
	account    = "manifold-syncer-0a1b2c3d"
)

// inSystem is metadata of the system namespace.
func inSystem(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: manifoldv1alpha1.SystemNamespace, Name: name}
}

// issuing is a cluster that gives tokens for as long as it is asked, up to a day, and notes what it was asked for.
func issuing(t *testing.T, objects ...runtime.Object) (*Cluster, *authenticationv1.TokenRequest) {
	t.Helper()
	client, asked := fake.NewClientset(objects...), &authenticationv1.TokenRequest{}
	client.PrependReactor("create", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		secret := a.(clienttesting.CreateAction).GetObject().(*corev1.Secret)
		secret.Name, secret.UID = secret.GenerateName+"x", "2"
		return false, nil, nil
	})
	client.PrependReactor("create", "serviceaccounts", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "token" {
			return false, nil, nil
		}
		a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenRequest).DeepCopyInto(asked)
		life := min(*asked.Spec.ExpirationSeconds, 24*3600)
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{
			Token: tokenOf(asked.Spec.BoundObjectRef, time.Duration(life)*time.Second),
		}}, nil
	})
	return &Cluster{client: client}, asked
}

func tokenOf(bound *authenticationv1.BoundObjectReference, life time.Duration) string {
	secret := ""
	if bound != nil {
		secret = fmt.Sprintf(`,"kubernetes.io":{"secret":{"name":%q,"uid":%q}}`, bound.Name, bound.UID)
	}
	claims := fmt.Sprintf(`{"sub":"system:serviceaccount:manifold-system:%s","iat":1000,"exp":%d%s}`, account, 1000+int64(life/time.Second), secret)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func TestATokenEndsWithASecretThatEndsWithTheServiceAccount(t *testing.T) {
	for name, test := range map[string]struct {
		lifetime time.Duration
		capped   string
	}{
		"as long as was asked for":         {lifetime: time.Hour},
		"as long as the cluster allows it": {lifetime: 48 * time.Hour, capped: ", which lasts 24h, as long as the cluster allows"},
	} {
		t.Run(name, func(t *testing.T) {
			p, asked := issuing(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "manifold-system", Name: account, UID: "1"}})
			var undo Undo
			got, err := p.Issue(t.Context(), logicalUID, test.lifetime, &undo)
			if err != nil {
				t.Fatal(err)
			}
			if want := account + "-x"; got.Secret != want || got.Account != account {
				t.Errorf("the token is of %s and ends with %s, want %s", got.Account, got.Secret, want)
			}
			if got := got.Capped(test.lifetime); got != test.capped {
				t.Errorf("said %q, want %q", got, test.capped)
			}
			if got := time.Duration(*asked.Spec.ExpirationSeconds) * time.Second; got != test.lifetime {
				t.Errorf("asked for %s, want %s", got, test.lifetime)
			}
			secrets := p.client.CoreV1().Secrets(manifoldv1alpha1.SystemNamespace)
			secret, err := secrets.Get(t.Context(), got.Secret, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != "1" || secret.Type == corev1.SecretTypeServiceAccountToken || len(secret.Data) > 0 {
				t.Errorf("the Secret is %+v, want an empty one that the ServiceAccount owns", secret)
			}
			if err := undo.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if left := secretNames(t, p); len(left) > 0 {
				t.Errorf("after all was taken back there are %v", left)
			}
		})
	}
}

func TestAClusterThatDoesNotBindTokensIsRefused(t *testing.T) {
	p, _ := issuing(t, &corev1.ServiceAccount{ObjectMeta: inSystem(account)})
	p.client.(*fake.Clientset).PrependReactor("create", "serviceaccounts", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: tokenOf(nil, time.Hour)}}, nil
	})
	if _, err := p.Issue(t.Context(), logicalUID, time.Hour, &Undo{}); err == nil || !strings.Contains(err.Error(), "does not end with the Secret") {
		t.Errorf("got %v", err)
	}
}

func secretNames(t *testing.T, p *Cluster) []string {
	t.Helper()
	list, err := p.client.CoreV1().Secrets(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

func TestOnlyTheTokensOfTheLogicalClusterEnd(t *testing.T) {
	bound := func(name, logical string) *corev1.Secret {
		secret := &corev1.Secret{ObjectMeta: inSystem(name)}
		secret.Labels = grants.TokenLabels("0a1b2c3d")
		if logical != "" {
			secret.Labels["app.kubernetes.io/instance"] = logical
		}
		return secret
	}
	legacy := &corev1.Secret{ObjectMeta: inSystem(account), Type: corev1.SecretTypeServiceAccountToken}
	for name, test := range map[string]struct {
		act  func(ctx context.Context, p *Cluster) error
		want []string
	}{
		"all but the new one": {
			act: func(ctx context.Context, p *Cluster) error {
				names, err := p.Bound(ctx, logicalUID, account+"-new")
				if err != nil {
					return err
				}
				return p.Retire(ctx, names)
			},
			want: []string{account + "-new", "manifold-syncer-other", "strange"},
		},
		"none that has come since they were looked up": {
			act: func(ctx context.Context, p *Cluster) error {
				names, err := p.Bound(ctx, logicalUID, account+"-new")
				if err != nil {
					return err
				}
				if _, err := p.client.CoreV1().Secrets(manifoldv1alpha1.SystemNamespace).Create(ctx, bound(account+"-newer", ""), metav1.CreateOptions{}); err != nil {
					return err
				}
				return p.Retire(ctx, names)
			},
			want: []string{account + "-new", account + "-newer", "manifold-syncer-other", "strange"},
		},
		"all, with their ServiceAccount": {
			act:  func(ctx context.Context, p *Cluster) error { return p.Disown(ctx, logicalUID) },
			want: []string{"manifold-syncer-other", "strange"},
		},
		"twice is as good as once": {
			act: func(ctx context.Context, p *Cluster) error {
				if err := p.Disown(ctx, logicalUID); err != nil {
					return err
				}
				return p.Disown(ctx, logicalUID)
			},
			want: []string{"manifold-syncer-other", "strange"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Cluster{client: fake.NewClientset(&corev1.ServiceAccount{ObjectMeta: inSystem(account)}, legacy,
				bound(account+"-old", ""), bound(account+"-new", ""), bound("manifold-syncer-other", "manifold-syncer-other"),
				&corev1.Secret{ObjectMeta: inSystem("strange")})}
			if err := test.act(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if got := secretNames(t, p); !slices.Equal(got, test.want) {
				t.Errorf("left are %v, want %v", got, test.want)
			}
		})
	}
}
