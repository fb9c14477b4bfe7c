package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	mutatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"

	manifoldadmission "github.com/manifold-dev/manifold/pkg/admission"
	"github.com/manifold-dev/manifold/pkg/server/keys"
)

func TestServiceRange(t *testing.T) {
	for name, test := range map[string]struct {
		flag, want, wantIP string
		wantErr            bool
	}{
		"room for many by default":       {"", "10.0.0.0/16", "10.0.0.1", false},
		"the one that is given":          {"10.96.0.0/16", "10.96.0.0/16", "10.96.0.1", false},
		"the first of two":               {"10.96.0.0/16,fd00::/108", "10.96.0.0/16", "10.96.0.1", false},
		"the network of an address":      {"10.96.1.2/16", "10.96.0.0/16", "10.96.0.1", false},
		"an IPv6 range":                  {"fd00::/108", "fd00::/108", "fd00::1", false},
		"none of what is no range":       {"10.96.0.0", "", "", true},
		"none that is too small for one": {"10.96.0.0/32", "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, text, ip, err := serviceRange(test.flag)
			if (err != nil) != test.wantErr {
				t.Fatalf("error %v", err)
			}
			if err == nil && (text != test.want || ip.String() != test.wantIP) {
				t.Errorf("range %s with %s, want %s with %s", text, ip, test.want, test.wantIP)
			}
		})
	}
}

func TestKeysAreDefaultedAndFlagsAreObeyed(t *testing.T) {
	complete := func(t *testing.T, change func(*Options)) (*Options, *completedOptions) {
		t.Helper()
		o := NewOptions()
		change(o)
		dir, err := openDataDir(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { dir.Close() })
		c := &completedOptions{dir: dir, pki: keys.Store{Dir: dir.join("pki")}}
		if err := o.defaultKeys(c); err != nil {
			t.Fatal(err)
		}
		return o, c
	}
	t.Run("every key and certificate has a default that exists", func(t *testing.T) {
		o, c := complete(t, func(*Options) {})
		for _, file := range []string{
			o.SecureServing.ServerCert.CertKey.CertFile, o.SecureServing.ServerCert.CertKey.KeyFile,
			o.Authentication.ClientCert.ClientCA, o.Authentication.RequestHeader.ClientCAFile,
			o.ProxyClientCertFile, o.ProxyClientKeyFile, o.ServiceAccountSigningKeyFile, o.Authentication.ServiceAccounts.KeyFiles[0],
			o.Authentication.AuthenticationConfigFile,
		} {
			if !strings.HasPrefix(file, c.dir.path) {
				t.Errorf("%q is not in the data directory", file)
			}
			if _, err := os.Stat(file); err != nil {
				t.Error(err)
			}
		}
		if o.ServiceClusterIPRanges != "10.0.0.0/16" {
			t.Errorf("service range %q", o.ServiceClusterIPRanges)
		}
	})
	t.Run("what a flag names is used", func(t *testing.T) {
		o, _ := complete(t, func(o *Options) {
			o.SecureServing.ServerCert.CertKey.CertFile, o.SecureServing.ServerCert.CertKey.KeyFile = "own.crt", "own.key"
			o.Authentication.ClientCert.ClientCA = "own-ca.crt"
			o.Authentication.RequestHeader.ClientCAFile = "own-proxy-ca.crt"
			o.Authentication.ServiceAccounts.KeyFiles = []string{"own.pub"}
			o.ServiceAccountSigningKeyFile = "own-sa.key"
			o.Authentication.AuthenticationConfigFile = "own.yaml"
			o.ServiceClusterIPRanges = "10.96.0.0/16,fd00::/108"
		})
		got := []string{
			o.SecureServing.ServerCert.CertKey.CertFile, o.Authentication.ClientCert.ClientCA, o.Authentication.RequestHeader.ClientCAFile,
			o.Authentication.ServiceAccounts.KeyFiles[0], o.ServiceAccountSigningKeyFile, o.Authentication.AuthenticationConfigFile, o.ServiceClusterIPRanges,
		}
		want := []string{"own.crt", "own-ca.crt", "own-proxy-ca.crt", "own.pub", "own-sa.key", "own.yaml", "10.96.0.0/16,fd00::/108"}
		if !slices.Equal(got, want) {
			t.Errorf("options %v, want %v", got, want)
		}
	})
}

func TestAnonymousRequestsSeeHealthAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "authentication.yaml")
	if err := writeAnonymousConfig(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for line := range strings.Lines(string(data)) {
		if _, path, ok := strings.Cut(line, "path: "); ok {
			paths = append(paths, strings.TrimSpace(path))
		}
	}
	if want := []string{"/livez", "/readyz", "/healthz"}; !slices.Equal(paths, want) {
		t.Errorf("open paths %v, want %v, in\n%s", paths, want, data)
	}
}

func TestGracePeriodMustBePositive(t *testing.T) {
	o := NewOptions()
	o.DataDir, o.Silence.GracePeriod = filepath.Join(t.TempDir(), "data"), 0
	if _, err := o.Complete(t.Context()); err == nil || !strings.Contains(err.Error(), "--cluster-grace-period") {
		t.Errorf("error %v, want the flag in it", err)
	}
	if _, err := os.Stat(o.DataDir); !os.IsNotExist(err) {
		t.Error("the data directory was made all the same")
	}
}

func TestAdmissionPluginsComeBeforePoliciesAndWebhooks(t *testing.T) {
	order := NewOptions().Admission.GenericAdmission.RecommendedPluginOrder
	policies := slices.Index(order, mutatingadmissionpolicy.PluginName)
	for _, name := range manifoldadmission.Names() {
		if at := slices.Index(order, name); at < 0 || at > policies {
			t.Errorf("%s is at %d, want it before %d", name, at, policies)
		}
	}
}

// A webhook may add the label that an Application selects by.
func TestWhatIsSelectedIsHeldAfterWebhooksHaveChangedIt(t *testing.T) {
	order := NewOptions().Admission.GenericAdmission.RecommendedPluginOrder
	gate, webhooks := slices.Index(order, manifoldadmission.GatePlugin), slices.Index(order, mutatingwebhook.PluginName)
	if webhooks < 0 || gate < webhooks {
		t.Errorf("%s is at %d, want it behind %d", manifoldadmission.GatePlugin, gate, webhooks)
	}
}

func TestOwnFlagsComeFirst(t *testing.T) {
	named := NewOptions().Flags()
	if named.Order[0] != "manifold" || named.FlagSets["manifold"].Lookup("data-dir") == nil {
		t.Errorf("sections %v", named.Order)
	}
	for _, flag := range []string{"secure-port", "bind-address", "etcd-servers", "encryption-provider-config", "audit-policy-file"} {
		if !slices.ContainsFunc(named.Order, func(section string) bool { return named.FlagSets[section].Lookup(flag) != nil }) {
			t.Errorf("there is no --%s", flag)
		}
	}
}
