package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	mutatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	certutil "k8s.io/client-go/util/cert"
	cliflag "k8s.io/component-base/cli/flag"
	kubeoptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/plugin/pkg/admission/nodetaint"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/storageobjectinuseprotection"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/internal/work"
	manifoldadmission "github.com/manifold-dev/manifold/pkg/admission"
	"github.com/manifold-dev/manifold/pkg/podhooks"
	"github.com/manifold-dev/manifold/pkg/server/advertised"
	"github.com/manifold-dev/manifold/pkg/server/etcd"
	"github.com/manifold-dev/manifold/pkg/server/keys"
	"github.com/manifold-dev/manifold/pkg/server/limits"
	"github.com/manifold-dev/manifold/pkg/server/mirrors"
	"github.com/manifold-dev/manifold/pkg/server/outgoing"
	"github.com/manifold-dev/manifold/pkg/server/plugins"
	"github.com/manifold-dev/manifold/pkg/server/podwebhooks"
)

// Options are the options of "manifold start": those of the stock API server, with defaults that need nothing but a data directory,
// and Manifold's own.
type Options struct {
	// Name tells the logical cluster from others that run in the same process, in logs and in the metrics of informers and queues.
	Name string
	// DataDir holds the embedded etcd, keys, certificates and the administrator's kubeconfig.
	DataDir string
	// AdvertiseURL is where pods in clusters find the logical cluster. Empty means where the server is told that it is.
	AdvertiseURL string
	// Silence says what follows when a cluster does not answer.
	Silence limits.Silence
	// Bounds say how much is kept of one cluster.
	Bounds limits.Bounds
	// Outgoing says what may be called of what users name.
	Outgoing outgoing.Options
	// Promotions says how CI is heard about promotions.
	Promotions Promotions
	// Plugins says whether plugins run beside the server.
	Plugins plugins.Options

	*kubeoptions.ServerRunOptions

	podAdmission podwebhooks.Webhooks
	joined       joinedClusters
	governing    manifoldadmission.Governing
}

// NewOptions returns the default options.
func NewOptions() *Options {
	o := &Options{
		Name:             defaultName,
		DataDir:          ".manifold",
		Silence:          limits.Silence{GracePeriod: 40 * time.Second, Toleration: 5 * time.Minute, Unschedulable: 2 * time.Minute, FailoverRate: 1000},
		Bounds:           limits.DefaultBounds(),
		Plugins:          plugins.Options{UIDs: plugins.DefaultUIDs},
		ServerRunOptions: kubeoptions.NewServerRunOptions(),
	}
	o.SecureServing.BindAddress = net.IPv4(127, 0, 0, 1)
	o.SecureServing.BindPort = 6443
	o.AllowPrivileged = true
	o.Authorization.Modes = []string{"RBAC"}
	o.Authentication.ServiceAccounts.Issuers = []string{"https://kubernetes.default.svc.cluster.local"}
	// Watches do not end by themselves. Without this, stopping would wait a minute for those that are open, our own controllers' included.
	o.GenericServerRunOptions.ShutdownWatchTerminationGracePeriod = 2 * time.Second
	// Nobody but this process has the right address of the one etcd member, and losing a write to save a flush would break the
	// promise that a crash changes nothing below.
	o.Etcd.StorageConfig.Transport.ServerList = nil
	// Definitions are large, and few watch them. Their cache would keep what a hundred charts and operators once defined for good.
	o.Etcd.WatchCacheSizes = []string{"customresourcedefinitions.apiextensions.k8s.io#0"}
	// The nodes are mirrors without a node controller that would take the taint away again, and claims are bound below.
	o.Admission.GenericAdmission.DefaultOffPlugins.Insert(nodetaint.PluginName, storageobjectinuseprotection.PluginName)
	o.addAdmission()
	return o
}

// addAdmission puts Manifold's plugins into the chain, before webhooks.
func (o *Options) addAdmission() {
	generic := o.Admission.GenericAdmission
	manifoldadmission.Register(generic.Plugins, o.joined.all)
	order := generic.RecommendedPluginOrder
	generic.Decorators = append(generic.Decorators, admission.DecoratorFunc(mirrors.ResizeBelow), admission.DecoratorFunc(o.podAdmission.Keep))
	manifoldadmission.RegisterGate(generic.Plugins, &o.governing)
	order = slices.Insert(slices.Clone(order), slices.Index(order, validatingadmissionpolicy.PluginName), manifoldadmission.GatePlugin)
	generic.RecommendedPluginOrder = slices.Insert(order, slices.Index(order, mutatingadmissionpolicy.PluginName), manifoldadmission.Names()...)
}

// Flags returns the flags by section: Manifold's own first, then those of the stock API server.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var named cliflag.NamedFlagSets
	fs := named.FlagSet("manifold")
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir,
		"Folder for the embedded etcd, keys, certificates and admin.kubeconfig. A second start on the same folder continues.")
	fs.StringVar(&o.AdvertiseURL, "advertise-url", o.AdvertiseURL,
		"How pods in clusters reach this logical cluster, https://HOST:PORT. The host is put into the serving certificate that is made here. "+
			"Default is the external hostname, or the address that is advertised or bound, with the secure port.")
	o.Silence.AddFlags(fs)
	o.Bounds.AddFlags(fs)
	o.Outgoing.AddFlags(fs)
	o.Promotions.addFlags(fs)
	o.Plugins.AddFlags(fs)
	stock := o.ServerRunOptions.Flags()
	for _, name := range stock.Order {
		named.FlagSet(name).AddFlagSet(stock.FlagSets[name])
	}
	return named
}

// CompletedOptions are options with every default filled in. The data directory is locked and its keys exist.
type CompletedOptions struct {
	// The private pointer cannot be made outside this package.
	*completedOptions
}

type completedOptions struct {
	name string
	kube kubeoptions.CompletedOptions
	dir  *dataDir
	pki  keys.Store
	// names are those that the serving certificate is made out to.
	names certutil.AltNames
	// advertised is what pods are told of where the server is.
	advertised   advertised.Address
	embeddedEtcd *etcd.Server
	silence      limits.Silence
	bounds       limits.Bounds
	outgoing     *outgoing.Options
	promotions   Promotions
	plugins      plugins.Options
	podAdmission *podwebhooks.Webhooks
	// joined is to be told who knows the clusters.
	joined *joinedClusters
	// governing is to be told who knows the Applications.
	governing *manifoldadmission.Governing
	// podKey proves what webhooks have changed of pods.
	podKey podhooks.Key
}

// defaultName is that of the logical cluster of a process that has no other.
const defaultName = "default"

// queues are the names of the queues. Those of the default logical cluster go without its name.
func (c *completedOptions) queues() work.Names {
	if c.name == defaultName {
		return ""
	}
	return work.Names(c.name)
}

// Complete locks the data directory, makes missing keys and certificates, starts the embedded etcd with its Secrets encrypted unless
// --etcd-servers names another one, and fills in what the stock options need. What it started ends with Run, or with Close when Run is not reached.
func (o *Options) Complete(ctx context.Context) (_ CompletedOptions, err error) {
	if err := errors.Join(o.Silence.Validate(), o.Bounds.Validate(), o.Outgoing.Validate(), o.Promotions.validate(), o.Plugins.Validate()); err != nil {
		return CompletedOptions{}, err
	}
	dir, err := openDataDir(o.DataDir)
	if err != nil {
		return CompletedOptions{}, err
	}
	c := &completedOptions{name: o.Name, dir: dir, pki: keys.Store{Dir: dir.join("pki")}, silence: o.Silence, bounds: o.Bounds, outgoing: &o.Outgoing, promotions: o.Promotions, plugins: o.Plugins,
		podAdmission: &o.podAdmission, joined: &o.joined, governing: &o.governing}
	completed := CompletedOptions{c}
	defer func() {
		if err != nil {
			completed.Close()
		}
	}()

	if err := o.defaultKeys(c); err != nil {
		return CompletedOptions{}, err
	}
	secret, err := os.ReadFile(o.ServiceAccountSigningKeyFile) // which several servers share
	if err != nil {
		return CompletedOptions{}, fmt.Errorf("--service-account-signing-key-file: %w", err)
	}
	if c.podKey, err = podhooks.DeriveKey(secret); err != nil {
		return CompletedOptions{}, err
	}
	if len(o.Etcd.StorageConfig.Transport.ServerList) == 0 {
		if c.embeddedEtcd, err = etcd.Start(ctx, dir.join("etcd")); err != nil {
			return CompletedOptions{}, err
		}
		o.Etcd.StorageConfig.Transport.ServerList = []string{c.embeddedEtcd.Endpoint}
		// Several servers in front of another etcd would each make a key of their own.
		if o.Etcd.EncryptionProviderConfigFilepath == "" {
			file := dir.join("encryption", "config.yaml")
			if err := keys.EncryptSecrets(ctx, file, c.embeddedEtcd.Endpoint, o.Etcd.StorageConfig.Prefix); err != nil {
				return CompletedOptions{}, err
			}
			o.Etcd.EncryptionProviderConfigFilepath = file
		}
	}
	if c.kube, err = o.ServerRunOptions.Complete(ctx); err != nil {
		return CompletedOptions{}, err
	}
	return completed, nil
}

// Validate returns every mistake in the stock options.
func (c CompletedOptions) Validate() []error { return c.kube.Validate() }

// AdminKubeconfig is the path of the administrator's kubeconfig.
func (c CompletedOptions) AdminKubeconfig() string { return c.dir.join("admin.kubeconfig") }

// Close stops what Complete started. Run does it too.
func (c CompletedOptions) Close() {
	if c.embeddedEtcd != nil {
		c.embeddedEtcd.Close()
	}
	c.dir.Close()
}

// defaultKeys fills in every key and certificate that no flag names with one that is kept in the data directory.
func (o *Options) defaultKeys(c *completedOptions) error {
	_, serviceRange, serviceIP, err := serviceRange(o.ServiceClusterIPRanges)
	if err != nil {
		return fmt.Errorf("--service-cluster-ip-range: %w", err)
	}
	if o.ServiceClusterIPRanges == "" {
		o.ServiceClusterIPRanges = serviceRange
	}
	if c.advertised, err = o.advertised(); err != nil {
		return err
	}
	names := keys.ServingNames(serviceIP, o.SecureServing.BindAddress, o.GenericServerRunOptions.AdvertiseAddress)
	c.advertised.Cover(&names)
	c.names = names
	if err := c.pki.Ensure(time.Now(), names); err != nil {
		return err
	}

	if cert := &o.SecureServing.ServerCert; cert.CertKey.CertFile == "" && cert.CertKey.KeyFile == "" {
		cert.CertKey.CertFile, cert.CertKey.KeyFile = c.pki.Cert(keys.ServingCert), c.pki.Key(keys.ServingCert)
	}
	authn := o.Authentication
	setDefault(&authn.ClientCert.ClientCA, c.pki.Cert(keys.Authority))
	if authn.RequestHeader.ClientCAFile == "" {
		authn.RequestHeader.ClientCAFile = c.pki.Cert(keys.FrontProxyAuthority)
		authn.RequestHeader.AllowedNames = []string{"front-proxy-client"}
		authn.RequestHeader.UsernameHeaders = []string{"X-Remote-User"}
		authn.RequestHeader.GroupHeaders = []string{"X-Remote-Group"}
		authn.RequestHeader.ExtraHeaderPrefixes = []string{"X-Remote-Extra-"}
	}
	if o.ProxyClientCertFile == "" {
		o.ProxyClientCertFile, o.ProxyClientKeyFile = c.pki.Cert(keys.FrontProxyCert), c.pki.Key(keys.FrontProxyCert)
	}
	setDefault(&o.ServiceAccountSigningKeyFile, c.pki.Key(keys.ServiceAccountKey))
	if len(authn.ServiceAccounts.KeyFiles) == 0 {
		authn.ServiceAccounts.KeyFiles = []string{c.pki.Pub(keys.ServiceAccountKey)}
	}
	if authn.AuthenticationConfigFile == "" && !authn.Anonymous.FlagsSet {
		path := c.dir.join("authentication.yaml")
		if err := writeAnonymousConfig(path); err != nil {
			return err
		}
		authn.AuthenticationConfigFile = path
	}
	return nil
}

// writeAnonymousConfig lets requests without credentials see whether the server is alive, and nothing else.
func writeAnonymousConfig(path string) error {
	config := apiserverv1.AuthenticationConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "AuthenticationConfiguration"},
		Anonymous: &apiserverv1.AnonymousAuthConfig{
			Enabled:    true,
			Conditions: []apiserverv1.AnonymousAuthCondition{{Path: "/livez"}, {Path: "/readyz"}, {Path: "/healthz"}},
		},
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("authentication config: %w", err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("authentication config: %w", err)
	}
	return nil
}

func setDefault(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// advertised is where pods in clusters find the logical cluster. Without the flag they are told what the server itself is told of how it is reached.
func (o *Options) advertised() (advertised.Address, error) {
	if o.AdvertiseURL != "" {
		return advertised.Parse(o.AdvertiseURL)
	}
	return advertised.Bound(o.GenericServerRunOptions.ExternalHost, o.SecureServing.BindPort, o.GenericServerRunOptions.AdvertiseAddress, o.SecureServing.BindAddress)
}
