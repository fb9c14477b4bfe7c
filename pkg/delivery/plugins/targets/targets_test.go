package targets

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

var (
	noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	east = Access{
		Server: "https://manifold.example:6443", Authority: []byte("an authority"), Cluster: "east", Namespace: "shop", ServiceAccount: "deployer", Duration: time.Hour,
	}
)

// issuing is a logical cluster that gives tokens, and remembers what for.
func issuing(status authenticationv1.TokenRequestStatus, err error) (*fake.Clientset, *authenticationv1.TokenRequest) {
	client, asked := fake.NewClientset(), &authenticationv1.TokenRequest{}
	client.PrependReactor("create", "serviceaccounts", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create := action.(clienttesting.CreateActionImpl)
		create.Object.(*authenticationv1.TokenRequest).DeepCopyInto(asked)
		asked.Namespace, asked.Name = create.Namespace, create.Name
		return true, &authenticationv1.TokenRequest{Status: status}, err
	})
	return client, asked
}

func TestATargetIsAKubeconfigOfTheViewWithATokenForItAlone(t *testing.T) {
	client, asked := issuing(authenticationv1.TokenRequestStatus{Token: "a token", ExpirationTimestamp: metav1.NewTime(noon.Add(50 * time.Minute))}, nil)
	got, err := Make(t.Context(), client, east, noon)
	if err != nil {
		t.Fatal(err)
	}
	if asked.Namespace != "shop" || asked.Name != "deployer" || len(asked.Spec.Audiences) != 1 || asked.Spec.Audiences[0] != v1alpha1.ViewAudience("east") ||
		*asked.Spec.ExpirationSeconds != 3600 {
		t.Errorf("asked for %+v", asked)
	}
	if want := noon.Add(40 * time.Minute); !got.Renew.Equal(want) || !got.Expires.Equal(noon.Add(50*time.Minute)) {
		t.Errorf("renewed at %s, want %s, before %s", got.Renew, want, got.Expires)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(got.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://manifold.example:6443/clusters/east" || config.BearerToken != "a token" || string(config.CAData) != "an authority" {
		t.Errorf("reaches %s by %q, trusting %q", config.Host, config.BearerToken, config.CAData)
	}
	raw, err := clientcmd.Load(got.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if namespace := raw.Contexts[raw.CurrentContext].Namespace; namespace != "shop" {
		t.Errorf("works in namespace %q", namespace)
	}
}

func TestAProcessThatGoesOnFindsTheNextTokenBesideTheSameKubeconfig(t *testing.T) {
	dir := t.TempDir()
	kubeconfig := ""
	for i, token := range []string{"first", "second"} {
		client, _ := issuing(authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(noon.Add(time.Hour))}, nil)
		target, err := Make(t.Context(), client, east, noon)
		if err != nil {
			t.Fatal(err)
		}
		if now := target.Files[KubeconfigFile("east")]; now == "" || i > 0 && now != kubeconfig || strings.Contains(now, token) {
			t.Errorf("the kubeconfig became %s", now)
		}
		kubeconfig = target.Files[KubeconfigFile("east")]
		for name, content := range target.Files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, KubeconfigFile("east")))
		if err != nil {
			t.Fatal(err)
		}
		if read, err := os.ReadFile(config.BearerTokenFile); err != nil || string(read) != token || len(target.Files) != 2 {
			t.Errorf("logs in by %q of %s, %v", read, config.BearerTokenFile, err)
		}
	}
}

func TestWhatIsNoAccessIsRefusedByItsFieldBeforeATokenIsMade(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Access)
		want   string
	}{
		"an address without TLS":           {func(a *Access) { a.Server = "http://manifold.example" }, "server: "},
		"an address with a password":       {func(a *Access) { a.Server = "https://me:secret@manifold.example" }, "server: "},
		"the address of a view":            {func(a *Access) { a.Server += "/clusters/west" }, `server: "https://manifold.example:6443/clusters/west" is the view of cluster "west"`},
		"no address":                       {func(a *Access) { a.Server = "" }, "server: "},
		"a path for a cluster":             {func(a *Access) { a.Cluster = "../east" }, `cluster: "../east"`},
		"no namespace":                     {func(a *Access) { a.Namespace = "" }, `namespace: ""`},
		"a ServiceAccount with a slash":    {func(a *Access) { a.ServiceAccount = "a/b" }, `serviceAccount: "a/b"`},
		"less than API servers give":       {func(a *Access) { a.Duration = time.Minute }, "duration: 1m0s"},
		"more than anybody needs":          {func(a *Access) { a.Duration = 25 * time.Hour }, "duration: 25h0m0s"},
		"two fields, and both are told of": {func(a *Access) { a.Duration, a.Namespace = 0, "" }, "duration: 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			client, asked := issuing(authenticationv1.TokenRequestStatus{Token: "a token", ExpirationTimestamp: metav1.NewTime(noon.Add(time.Hour))}, nil)
			a := east
			test.change(&a)
			_, err := Make(t.Context(), client, a, noon)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error tells the password: %v", err)
			}
			if asked.Name != "" {
				t.Error("a token was made")
			}
		})
	}
}

func TestATokenThatIsNoneIsAnError(t *testing.T) {
	for name, status := range map[string]authenticationv1.TokenRequestStatus{
		"none":                     {ExpirationTimestamp: metav1.NewTime(noon.Add(time.Hour))},
		"one that is over already": {Token: "a token", ExpirationTimestamp: metav1.NewTime(noon)},
	} {
		client, _ := issuing(status, nil)
		if _, err := Make(t.Context(), client, east, noon); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	client, _ := issuing(authenticationv1.TokenRequestStatus{}, context.DeadlineExceeded)
	if _, err := Make(t.Context(), client, east, noon); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "ServiceAccount shop/deployer") {
		t.Errorf("error %v names neither the account nor the cause", err)
	}
}

func TestClustersThatGoAreNoTargets(t *testing.T) {
	named := func(name string, set labels.Set) *v1alpha1.Cluster {
		return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set}}
	}
	goes := named("south", labels.Set{"region": "eu"})
	goes.DeletionTimestamp = &metav1.Time{Time: noon}
	selector, err := labels.Parse("region=eu")
	if err != nil {
		t.Fatal(err)
	}
	got := Selected([]*v1alpha1.Cluster{named("east", labels.Set{"region": "eu"}), named("west", nil), goes}, selector)
	if len(got) != 1 || got[0].Name != "east" {
		t.Errorf("selected %v, want east", got)
	}
}

func TestTheConfigurationIsAsPluginsForKubernetesReadIt(t *testing.T) {
	got, err := Config(`/plugins/"a"/east.kubeconfig`, "shop")
	if want := `{"kubeConfigPath":"/plugins/\"a\"/east.kubeconfig","appStateInformer":{"namespace":"shop"}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}
